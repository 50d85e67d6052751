# A File-Based Semaphore in shell, with the noclobber that the specification's example lacks. For bash.
. "${0%/*}/worker.sh"

take() {
	set -C
	printf 'pid=%s\ntimestamp=%s\ntag=%s\n' $$ "$(date +%s)" "$me" > lock
}

work
