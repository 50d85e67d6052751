is_lock_stale() {
  local lock_path="$1"

  local last_heartbeat
  last_heartbeat=$(jq -r '.last_heartbeat_at' "$lock_path")

  local ttl
  ttl=$(jq -r '.ttl_seconds' "$lock_path")

  local last_epoch
  last_epoch=$(date -d "$last_heartbeat" +%s)

  local now_epoch
  now_epoch=$(date +%s)

  local age=$((now_epoch - last_epoch))

  if [[ $age -gt $ttl ]]; then
    echo "stale"
    return 0
  else
    echo "active"
    return 1
  fi
}
