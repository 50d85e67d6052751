# Looks whether the lock is there and then creates it, which excludes nobody.
. "${0%/*}/worker.sh"

take() {
	[ ! -e lock ] || return
	nap
	echo "$me" > lock
}

work
