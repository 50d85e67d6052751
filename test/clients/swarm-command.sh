# A lock of the swarm protocol by the command in $LOCKFS, which does not wait.
. "${0%/*}/worker.sh"

lock=locks/task.lock

take() {
	out=$(SWARM_STATE_DIR=. "$LOCKFS" swarm acquire task "$me" 2>&1) && return
	case $out in
	*"held"* | *"Lock already exists"* | *"not acquired"*) ;;
	*) echo "$out" ;;
	esac
	return 1
}

drop() { SWARM_STATE_DIR=. "$LOCKFS" swarm release task "$me" > /dev/null; }

tidy() { rmdir locks 2> /dev/null || :; } # the last one can

work
