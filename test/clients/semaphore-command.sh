# A File-Based Semaphore by the command in $LOCKFS, which waits for it. For bash.
. "${0%/*}/worker.sh"

take() { "$LOCKFS" semaphore acquire lock --pid $$ --tag "$me" --timeout 1m > /dev/null; }
drop() { "$LOCKFS" semaphore release lock --pid $$ > /dev/null; }

work
