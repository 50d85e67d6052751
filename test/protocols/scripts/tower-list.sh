# List all locks
ls -la /root/tower-fleet/logs/locks/*.lock 2>/dev/null

# Show lock details
for lock in /root/tower-fleet/logs/locks/*.lock; do
  echo "=== $(basename "$lock") ==="
  jq . "$lock"
done
