# A tower lock by the command in $LOCKFS, which waits for it. For bash.
. "${0%/*}/worker.sh"

lock=app.lock

take() {
	"$LOCKFS" tower acquire app --dir . --request-id "$me" --intent test --intent-version 1 --wait 1m > /dev/null
}

drop() { "$LOCKFS" tower release app --dir . --request-id "$me" > /dev/null; }

work
