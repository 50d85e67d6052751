# The lock manager of the tower protocol, its locks made with noclobber (tower section 4.2, method 1). For
# bash; to be sourced.

now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# create_lock_json NAME REQUEST TTL
create_lock_json() {
	jq -n --arg lock_name "$1" --arg request_id "$2" --argjson ttl_seconds "$3" --arg now "$(now)" \
		--arg host_id "$(hostname)" --argjson pid "$$" '{
			lock_version: "v1",
			lock_name: $lock_name,
			request_id: $request_id,
			actor: "test",
			intent: "deploy-app",
			intent_version: "1.2.0",
			host_id: $host_id,
			pid: $pid,
			created_at: $now,
			last_heartbeat_at: $now,
			ttl_seconds: $ttl_seconds,
			metadata: {}
		}'
}

# acquire NAME REQUEST TTL
acquire() {
	local lock_json
	lock_json=$(create_lock_json "$@") || return
	(set -o noclobber && echo "$lock_json" > "$1.lock")
}

# update_heartbeat NAME [LOCK]: LOCK is where the rest of the lock is taken from, if not from the lock.
update_heartbeat() {
	local lock_path=$1.lock temp_path=$1.lock.heartbeat.tmp
	jq --arg ts "$(now)" '.last_heartbeat_at = $ts' "${2:-$lock_path}" > "$temp_path" || return
	mv "$temp_path" "$lock_path"
}

# is_lock_stale NAME (section 6.2). One that cannot be read is not.
is_lock_stale() {
	local last_heartbeat ttl
	read -r last_heartbeat ttl < <(jq -r '"\(.last_heartbeat_at) \(.ttl_seconds)"' "$1.lock" 2> /dev/null) &&
		[ $(($(date +%s) - $(date -d "$last_heartbeat" +%s))) -gt "$ttl" ]
}

# acquire_lock NAME REQUEST TTL [FORCE] (section 10.2)
acquire_lock() {
	if [ ! -e "$1.lock" ]; then
		acquire "$1" "$2" "$3"
	elif ! is_lock_stale "$1"; then
		echo "ERROR: Lock is held by active process." >&2
		return 1
	elif [ "$4" = true ]; then
		steal "$1" "$2" "$3"
	else
		echo "ERROR: Lock is stale. Use --force-lock to acquire." >&2
		return 1
	fi
}

# release_lock NAME REQUEST (section 10.2)
release_lock() {
	if [ "$(jq -r .request_id "$1.lock")" != "$2" ]; then
		echo "ERROR: Lock held by different request" >&2
		return 1
	fi
	rm -f "$1.lock"
}

# steal NAME REQUEST TTL: what --force-lock does
steal() {
	rm "$1.lock" && acquire "$@"
}
