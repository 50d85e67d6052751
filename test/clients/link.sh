# A hard link to a file of one's own, under the name that all want.
. "${0%/*}/worker.sh"

take() {
	[ -e "$me" ] || echo "$me" > "$me" || return
	ln -T "$me" lock
}

tidy() { rm -f "$me"; }

work
