# A tower lock by the functions in tower.sh. For bash.
. "${0%/*}/worker.sh"

lock=app.lock

# An attempt is several programs.
nap() { sleep 0.1; }

# What it says of a lock that somebody has is no error.
take() {
	. "${0%/*}/tower.sh"
	acquire_lock app "$me" 900 2>&1 | grep -v '^ERROR: Lock is held by active process'
	[ "${PIPESTATUS[0]}" = 0 ]
}

drop() {
	. "${0%/*}/tower.sh"
	release_lock app "$me"
}

work
