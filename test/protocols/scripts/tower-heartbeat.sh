update_heartbeat() {
  local lock_path="$1"
  local temp_path="${lock_path}.heartbeat.tmp"

  jq --arg ts "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
     '.last_heartbeat_at = $ts' \
     "$lock_path" > "$temp_path"

  mv "$temp_path" "$lock_path"
}
