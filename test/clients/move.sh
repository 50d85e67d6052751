# A file of one's own is given the name that all want, unless that is there. mv
# does not say whether it did; it did if the file's own name is gone.
. "${0%/*}/worker.sh"

take() {
	[ -e "$me" ] || echo "$me" > "$me" || return
	mv -nT "$me" lock || return
	! insist "$me" > /dev/null
}

tidy() { rm -f "$me"; }

work
