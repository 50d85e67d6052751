package protocols

import (
	"strings"
	"testing"

	"lockfs/test/testcluster"

	"github.com/stretchr/testify/require"
)

// repetition is what a line says twice: three words in a row or a path. Empty: nothing.
func repetition(line string) string {
	var words []string
	seen := make(map[string]bool)
	for _, word := range strings.Fields(line) {
		words = append(words, strings.Trim(word, "`\"'()[]{};:,."))
		last := words[max(0, len(words)-3):]
		for _, what := range []string{strings.Join(last, " "), last[len(last)-1]} {
			if seen[what] && (len(last) == 3 && strings.Contains(what, " ") || strings.HasPrefix(what, "/")) {
				return what
			}
			seen[what] = true
		}
	}
	return ""
}

// TestMessagesSayNothingTwice provokes what commands can have to say of what is wrong on a mount, and of a cluster.
func TestMessagesSayNothingTwice(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0], c.Nodes[1]
	a.Host.MustRun(t, "bash", "-ec", `cd "$1"; set -C
		mkdir directory.lock full && touch full/x
		ln -s elsewhere link.lock
		ln -s loop.lock loop.lock
		: > empty.lock
		printf 'pid=x\ntimestamp=\n' > malformed.lock
		printf '{"lock_version": "v1", "lock_name": "tower"}' > tower.lock
		echo '{"task_id": "other", "worker": "w", "acquired_at": "2025-02-02T10:00:00Z"}' > swarm.lock`, "bash", c.Mount)
	holder := testcluster.StartShell(t, a.Host, c.Mount)
	holder.Must("set -C; " + testcluster.SemaphoreContent + " > semaphore.lock; " + testcluster.PidContent + " > pid.lock; set +C")
	calls := []string{
		"locks none", "locks DIR/none", "locks semaphore.lock/none", "rm DIR/none", "rm DIR/full", "rm DIR/semaphore.lock", "rm DIR/semaphore.lock DIR/none",
		"rm DIR", "rm DIR/.lockfs", "rm DIR/.lockfs/why/semaphore.lock", "wait DIR/.lockfs/wait/none/none --timeout 0s", "events --since 1000000",
		"rule set x", "rule set [ --guard host", "rule set x --stale-after -1s", "rule delete none", "host forget none", "host forget a",
		"member remove none", "session list x",
	}
	const request = " --dir DIR --request-id r --intent i --intent-version 1"
	names := strings.Fields("directory malformed semaphore none/x link loop empty tower swarm pid")
	if !testcluster.Long() {
		names = names[:4] // cmd/lockfs does this with all of them on a local disk
	}
	for _, name := range names {
		for _, call := range []string{
			"tower acquire NAME" + request, "tower release NAME --request-id r --dir DIR", "tower heartbeat NAME --request-id r --dir DIR", "tower check NAME --dir DIR",
			"semaphore acquire DIR/NAME.lock", "semaphore release DIR/NAME.lock", "semaphore run DIR/NAME.lock -- false", "wait DIR/NAME.lock --timeout 0s",
			"run --format pid DIR/NAME.lock --nonblock -- false", "run --format swarm DIR/NAME.lock --nonblock -- false",
			"run --format tower DIR/NAME.lock --nonblock -- false", "run --slots 2 DIR/NAME.lock --nonblock -- false", "run --once-per 1h DIR/NAME.lock -- false",
		} {
			calls = append(calls, strings.ReplaceAll(call, "NAME", name))
		}
	}
	failed := 0
	for _, call := range calls {
		p := b.Host.Start("env", append([]string{"LOCKFS_SERVERS=" + b.Addr(), c.Program}, strings.Fields(strings.ReplaceAll(call, "DIR", c.Mount))...)...)
		if p.Wait() == nil { // somebody could take it
			continue
		}
		failed++
		for line := range strings.Lines(p.Log()) {
			if strings.HasPrefix(line, "lockfs: ") {
				require.Empty(t, repetition(line), "lockfs %s\n%s", call, p.Log())
			}
		}
	}
	require.Greater(t, failed, len(calls)/2)
}
