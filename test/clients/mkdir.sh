# A directory is made once.
. "${0%/*}/worker.sh"

take() { mkdir lock; }
drop() { rmdir lock; }

work
