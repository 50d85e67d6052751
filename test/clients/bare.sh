# noclobber.sh for a directory where lockfs is not always mounted. It tries to take the lock whatever is there, also in the bare
# directory, but finds out what became of its lock only on lockfs.
. "${0%/*}/worker.sh"

take() {
	set -C
	{ echo "$me" || :; } > lock
}

look() {
	at sh -c '[ -e .lockfs ] || exit 2
		stat --format=%i -- "$1" 2> /dev/null && exit
		[ -e .lockfs ] || exit 2
		exit 1' sh "$1"
}

work
