mkdir -p /root/tower-fleet/logs/locks
chmod 700 /root/tower-fleet/logs/locks
