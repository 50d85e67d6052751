# Takes locks as scripts do that know of crashed holders: who finds a lock looks at it, judges it, removes
# it if it is stale, and tries again. Nothing in here keeps two from doing so at once. Called with
#
#     FORMAT      semaphore: a pid and a timestamp, stale after some seconds; pid; mkdir: a directory with a pid
#                 file in it; line: host, pid and time in a line, stale after some seconds; or creator: a pid, in
#                 words that are of no format, and each holder is a program of its own
#     DIRECTORY   where the locks are
#     WITNESS     a directory on the local disk
#     NAME        of this worker, unlike all others
#     LOCKS       how many there are, named 0, 1, 2 and so on; they are tried at random until
#                 WITNESS/stop is there
#
# Half of the holders crash. To the file in WITNESS that is named like the lock, a holder appends "enter
# NAME" and "leave NAME" or "crash NAME", with another name each time. "late NAME" says that it was so slow
# that its lock may have been stale by then.
#
# STAY is how many seconds a lock is had.
#
# It prints a line "error: ..." for what goes wrong, and goes on.

LC_ALL=C
set -a # also for programs of their own
exec 2> /dev/null # where bash tells of each crash
format=$1 directory=$2 witness=$3 worker=$4 locks=$5
limit=1 # second

create() {
	case $format in
	semaphore)
		began=$(date +%s)
		content="pid=$BASHPID"$'\n'"timestamp=$began"
		;;
	line)
		began=$(date +%s)
		content="$HOSTNAME $BASHPID $began"
		;;
	pid) content=$BASHPID ;;
	creator) content="held by $BASHPID" ;;
	mkdir)
		pid=$BASHPID
		said=$( { mkdir "$lock" && echo "$pid" > "$lock/pid"; } 2>&1)
		return
		;;
	esac
	said=$( (set -C && echo "$content" > "$lock") 2>&1)
}

# A lock that has just been made is empty, which does not make it stale.
stale() {
	case $format in
	semaphore)
		timestamp=$(sed -n 's/^timestamp=//p' "$lock")
		[ -n "$timestamp" ] && late "$timestamp"
		;;
	line)
		read -r _ _ timestamp < "$lock"
		[ -n "$timestamp" ] && late "$timestamp"
		;;
	pid | mkdir | creator)
		pid=$(if [ "$format" = mkdir ]; then cat "$lock/pid"; else sed 's/held by //' "$lock"; fi)
		[ -n "$pid" ] && ! kill -0 "$pid"
		;;
	esac
}

drop() {
	if [ "$format" = mkdir ]; then rm -rf "$lock"; else rm -f "$lock"; fi
}

late() { [ $(($(date +%s) - $1)) -gt "$limit" ]; }

acquire() {
	create && return
	stale || return
	sleep 0.02
	drop
	create
}

record() { echo "$1 $me" >> "$witness/${lock##*/}"; }

# Runs in a process of its own, so that it can crash.
attempt() {
	acquire
	taken=$?
	case $said in
	'' | *"cannot overwrite existing file"* | *"File exists"*) ;;
	*) echo "error: acquire: $said" ;;
	esac
	[ "$taken" = 0 ] || return
	record enter
	sleep "${STAY:-0.02}"
	record "$end"
	[ -z "$began" ] || ! late "$began" || record late
	[ "$end" = leave ] || kill -9 "$BASHPID"
	said=$(drop 2>&1) && return
	# A directory that is empty while it is being removed may be removed by another, and be made anew.
	[ "$format $said" = "mkdir ${said%: Directory not empty}: Directory not empty" ] || echo "error: release: $said"
}

number=0
until [ -e "$witness/stop" ]; do
	number=$((number + 1)) me=$worker-$number lock=$directory/$((RANDOM % locks))
	end=leave
	[ $((RANDOM % 2)) = 0 ] || end=crash
	if [ "$format" = creator ]; then setsid bash -c attempt; else (attempt); fi
done
echo finished
