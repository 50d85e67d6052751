# What is done under a tower lock, run by the command in $LOCKFS. For bash.
. "${0%/*}/worker.sh"

export witness me
export -f critical nap
for ((round = 0; round < rounds; round++)); do
	"$LOCKFS" tower run app --dir "$directory" --intent test --intent-version 1 --wait 1m -- bash -c critical ||
		echo "error: run: exit status $?"
done
echo "finished after $rounds rounds"
