# lockfs run, by the command in $LOCKFS. The format is what the directory's name ends with: run-tower. Called like the other shell
# clients, see worker.sh, but for the first argument: with "inside" it is the command that is run.
if [ "$1" = inside ]; then
	shift
	. "${0%/*}/worker.sh"
	critical
	exit
fi
. "${0%/*}/worker.sh"

format=${directory##*-}
case $format in
tower | swarm) lock=$directory/app.lock ;;
beads) lock=$directory ;;
*) lock=$directory/lock ;;
esac

round=0
until [ "$round" -ge "$rounds" ] && [ -e "$witness/stop" ]; do
	if said=$("$LOCKFS" run --format "$format" --wait 2s "$lock" -- sh "$0" inside "$directory" "$witness" "$me" 1 2>&1); then
		round=$((round + 1))
	else
		echo "error: run: $said"
		# Who may have lost its lock is ended inside.
		case $(grep " $me\$" "$witness/log" | tail -n 1) in
		enter*) echo "crash $me" >> "$witness/log" ;;
		esac
	fi
	rest
done
echo "finished after $round rounds"
