# The shell's noclobber: a redirection creates the file or fails. For bash and dash.
. "${0%/*}/worker.sh"

# Once the file is there it is ours, even if nothing can be written to it.
take() {
	set -C
	{ echo "$me" || :; } > lock
}

work
