# Shell script creating lock
echo "pid=$$" > /tmp/my.lock
echo "timestamp=$(date +%s)" >> /tmp/my.lock
echo "tag=shell-script" >> /tmp/my.lock
