# The exclusive lock of a .beads directory by the command in $LOCKFS.
. "${0%/*}/worker.sh"

lock=.exclusive-lock

take() {
	out=$("$LOCKFS" beads acquire . --holder "$me" --pid $$ 2>&1) && return
	case $out in
	*"not acquired"*) ;;
	*) echo "$out" ;;
	esac
	return 1
}

drop() { "$LOCKFS" beads release . --pid $$ > /dev/null; }

work
