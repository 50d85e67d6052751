# What the shell clients share: they take a lock, count, and give it back, again
# and again. A client is called with
#
#     DIRECTORY   the lock is the name "lock" in it
#     WITNESS     a directory on the local disk with the files log and count
#     NAME        of this worker, unlike all others
#     ROUNDS      at least so many, and until WITNESS/stop is there
#
# and defines, each run in DIRECTORY,
#
#     take    ends with 0 if it has the lock; says on standard error what went wrong
#     drop    removes the lock that it has
#     lock    the name of its file, if that is not lock
#     tidy    removes what else it has made
#
# In WITNESS/attempts.NAME it counts its attempts to take the lock that have ended. After each it rests for $REST seconds, 0.01 unless
# that is set.
#
# It prints a line "error: ..." for what goes wrong, other than that the lock is
# taken, and goes on.

LC_ALL=C
export LC_ALL
exec 3>&2 # where the worker complains, whatever becomes of 2
directory=$1 witness=$2 me=$3 rounds=$4
lock=lock

take() { false; }
drop() { rm "$lock"; }
tidy() { :; }

# at COMMAND: runs it in the directory. What it says about a file there is said
# of the file system that was there when it started.
at() (
	cd "$directory" && "$@"
)

nap() { sleep 0.01; }
rest() { sleep "${REST:-0.01}"; }

# look FILE: prints its inode number. Ends with 1 if there is no such file, and
# with 2 if that cannot be told now; then it says why.
look() {
	if seen=$(at stat --format=%i -- "$1" 2>&1); then
		echo "$seen"
		return 0
	fi
	case $seen in
	stat:*"No such file"*) return 1 ;;
	esac
	echo "error: look: $seen" >&3
	return 2
}

# insist FILE: look, until there is an answer.
insist() {
	while :; do
		look "$1"
		case $? in
		0) return 0 ;;
		1) return 1 ;;
		esac
		nap
	done
}

acquire() {
	said=$(at take 2>&1)
	acquired=$?
	said=$(printf '%s' "$said" | sed '/^lockfs: waiting for /d') # what a command says that waits for longer is no error
	case $said in
	'' | *"File exists"* | *"cannot overwrite existing file"*) ;;
	*) echo "error: acquire: $said" ;;
	esac
	attempts=$((attempts + 1))
	echo "$attempts" > "$witness/attempts.$me"
	return $acquired
}

# Nothing keeps two workers apart in here but the lock. One that is killed leaves the count as it was, or one more.
critical() {
	echo "enter $me" >> "$witness/log"
	read -r count < "$witness/count"
	nap
	echo $((count + 1)) > "$witness/count.$me"
	mv "$witness/count.$me" "$witness/count"
	echo "leave $me" >> "$witness/log"
}

# If a removal fails, it may have happened all the same, and the lock that is
# there now may be somebody else's. That one is another file.
release() {
	if ! mine=$(insist "$lock"); then
		echo "lost $me" >> "$witness/log"
		return
	fi
	until said=$(at drop 2>&1); do
		echo "error: release: $said"
		nap
		there=$(insist "$lock") && [ "$there" = "$mine" ] || return
	done
}

work() {
	round=0
	attempts=0
	until [ "$round" -ge "$rounds" ] && [ -e "$witness/stop" ]; do
		if acquire; then
			critical
			release
			round=$((round + 1))
		fi
		rest
	done
	until said=$(at tidy 2>&1); do
		echo "error: tidy: $said"
		nap
	done
	echo "finished after $round rounds"
}
