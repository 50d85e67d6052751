package protocols

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestWaitingIsToldOnAMount: who waits for a lock of another host is told whose it is, and the command that ends that does.
func TestWaitingIsToldOnAMount(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	a.MustRun(t, "mkdir", c.Path(".beads"), c.Path("locks"))
	for lock, format := range map[string]string{
		"semaphore": "semaphore", "t.lock": "tower", "s.lock": "swarm", ".beads/.exclusive-lock": "beads", "pid": "pid",
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			_, dir := startRun(t, c, a, lock, "--format", format)
			waiting := b.Start(c.Program, "run", "--format", format, c.Path(lock), "--", "echo", "mine")
			require.NoError(t, waiting.WaitOutput("waiting for "+c.Path(lock)+": held"))
			require.NoError(t, waiting.WaitOutput("; if its holder is gone: `lockfs rm --force "+c.Path(lock)+"`"))
			require.Regexp(t, "(?m)^lockfs: waiting for .* on a for ", waiting.Log())
			asJSON := b.Start(c.Program, "run", "--format", format, "--wait", "3s", "--json", c.Path(lock), "--", "true")
			require.ErrorContains(t, asJSON.Wait(), "exit status 76")
			told := fieldsOf(t, asJSON.Stdout())
			require.Equal(t, []any{"timed_out", "held", format, "a"}, []any{told["outcome"], told["state"], told["format"], told["host"]})
			require.Equal(t, fmt.Sprint(c.Token(t, b, lock)), fmt.Sprintf("%.0f", told["token"]))
			require.Contains(t, asJSON.Log(), `"outcome":"waiting"`)
			require.Equal(t, 1, strings.Count(waiting.Log(), "waiting for"))

			b.MustRun(t, c.Program, "rm", "--force", c.Path(lock))
			require.NoError(t, waiting.Wait(), waiting.Log())
			require.Equal(t, "mine\n", waiting.Stdout())
			awaitFile(t, dir+"/told")
		})
	}
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		a.MustRun(t, "bash", "-c", `set -C; > "$1"`, "bash", c.Path("empty"))
		waiting := b.Start(c.Program, "run", "--slots", "1", "--format", "pid", c.Path("locks"), "--", "echo", "mine")
		require.NoError(t, waiting.Wait(), waiting.Log())
		waiting = b.Start(c.Program, "semaphore", "run", c.Path("empty"), "--timeout", "1h", "--", "true")
		require.NoError(t, waiting.WaitOutput("Z: its creator may have crashed; if its holder is gone: `lockfs rm --force "))
		b.MustRun(t, c.Program, "rm", "--force", c.Path("empty"))
		require.NoError(t, waiting.Wait(), waiting.Log())
	})
	t.Run("stale tower", func(t *testing.T) {
		t.Parallel()
		a.MustRun(t, c.Program, "tower", "acquire", "old", "--dir", c.Path(), "--request-id", "r", "--intent", "i", "--intent-version", "1", "--ttl", "3")
		c.AwaitState(t, b, "old.lock", "stale")
		waiting := b.Start(c.Program, "run", "--format", "tower", c.Path("old.lock"), "--wait", "1h", "--", "true")
		require.NoError(t, waiting.WaitOutput(", but tower needs --force-lock; if its holder is gone: `lockfs run --force-lock`"))
		next := b.MustRun(t, c.Program, "run", "--format", "tower", "--force-lock", c.Path("old.lock"), "--", "echo", "forced")
		require.Equal(t, "forced\n", next)
		require.NoError(t, waiting.Wait(), waiting.Log())
	})
}

// TestEndingsOnAMount: the exit codes and the outcomes of commands are those of a plain directory, for locks of other hosts.
func TestEndingsOnAMount(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	a.MustRun(t, "mkdir", c.Path("beads"), c.Path("free"), c.Path("locks"))
	holder := testcluster.StartShell(t, a, c.Mount)
	holder.Must(c.Program + " semaphore acquire sem && " + c.Program + " beads acquire beads --holder me && " +
		"SWARM_STATE_DIR=. " + c.Program + " swarm acquire s w && " +
		"TOWER_LOCK_DIR=locks " + c.Program + " tower acquire t --request-id r --intent i --intent-version 1")
	for _, end := range []struct {
		code    int
		outcome string
		call    string
	}{
		{75, "held", "semaphore acquire sem"}, {75, "held", "beads acquire beads --holder other"}, {1, "held", "swarm acquire s other"},
		{75, "held", "tower acquire t --request-id o --intent i --intent-version 1"}, {76, "timed_out", "semaphore acquire sem --timeout 1ms"},
		{78, "not_owner", "semaphore release sem"}, {78, "not_owner", "beads release beads"}, {1, "not_owner", "swarm release s other"},
		{78, "not_owner", "tower release t --request-id o"}, {124, "lost", "tower heartbeat t --request-id o"},
		{79, "no_lock", "semaphore release none"}, {79, "no_lock", "beads release free"}, {1, "no_lock", "swarm release none w"},
		{0, "no_lock", "tower release none --request-id o"}, {0, "acquired", "semaphore acquire mine"}, {0, "acquired", "swarm acquire mine w"},
		{125, "failed", "semaphore acquire none/x"},
	} {
		process := b.Start("bash", "-c", `cd "$1"; export SWARM_STATE_DIR=. TOWER_LOCK_DIR=locks; "$2" `+end.call+` --json; exit $?`, "bash", c.Mount, c.Program)
		if err := process.Wait(); end.code == 0 {
			require.NoError(t, err, process.Log())
		} else {
			require.ErrorContains(t, err, fmt.Sprint("exit status ", end.code), end.call)
		}
		told := fieldsOf(t, process.Stdout())
		require.Equal(t, end.outcome, told["outcome"], end.call)
		if end.outcome == "held" || end.outcome == "not_owner" || end.outcome == "acquired" {
			require.Equal(t, "held", told["state"], end.call)
			require.NotZero(t, told["token"], end.call)
			require.NotEmpty(t, told["host"], end.call)
		}
	}
	waiting := b.Start(c.Program, "run", c.Path("sem"), "--", "true")
	require.NoError(t, waiting.WaitOutput("waiting for"))
	waiting.Signal(syscall.SIGINT)
	require.ErrorContains(t, waiting.Wait(), "exit status 130")
}
