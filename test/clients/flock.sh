# flock(1) in its forms, one after the other. Called like the other shell clients, see worker.sh, but for the
# first argument: with "inside" it is the command that flock runs.
if [ "$1" = inside ]; then
	shift
	. "${0%/*}/worker.sh"
	critical
	exit
fi
. "${0%/*}/worker.sh"

# inside FLOCK-ARGUMENTS: has flock run the command that does what needs the lock.
inside() { "$@" "$0" inside "$directory" "$witness" "$me" 1; }

# hold FLOCK-ARGUMENTS: has flock take the lock for a descriptor of this shell.
hold() {
	"$@" 9 || return
	critical
}

turn() {
	lock=$directory/lock
	case $1 in
	0) inside flock "$lock" sh ;;
	1) inside flock -o "$lock" sh ;;
	2) flock -w 60 "$lock" -c "sh '$0' inside '$directory' '$witness' '$me' 1" ;;
	3) until inside flock -n -E 75 "$lock" sh; do [ $? = 75 ] || return; nap; done ;;
	4) (hold flock -x) 9> "$lock" ;;
	5) (hold flock -x && flock -u 9) 9< "$lock" ;;
	6) inside flock --no-fork "$lock" sh ;;
	esac
}

round=0
until [ "$round" -ge "$rounds" ] && [ -e "$witness/stop" ]; do
	if said=$(turn $((round % 7)) 2>&1); then
		round=$((round + 1))
	else
		echo "error: turn $((round % 7)): $said"
		nap
	fi
done
echo "finished after $round rounds"
