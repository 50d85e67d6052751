package protocols

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// ended runs a script in the directory of the mount and waits until it has ended.
func ended(t testing.TB, c *testcluster.Cluster, h *hosts.Host, shell, script string) {
	t.Helper()
	_, _ = h.Run(shell, "-c", "cd "+c.Mount+"; "+script) // some are killed
}

// TestAMarkerIsTakenOnce by three hosts that run the same script, also after all of them have ended: as on a local disk.
func TestAMarkerIsTakenOnce(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	for _, shell := range []string{"bash", "dash"} {
		marker := "migrated-" + shell
		for range 3 {
			for _, h := range c.Hosts() {
				ended(t, c, h, shell, "(set -C; echo $$ >"+marker+") 2>/dev/null && echo "+h.Name()+" >>won-"+shell+"; exit 0")
			}
			for _, h := range c.Hosts() {
				c.AwaitState(t, h, marker, "stale")
			}
		}
		require.Equal(t, "a\n", c.Hosts()[0].MustRun(t, "cat", c.Path("won-"+shell)))
		why := c.Hosts()[1].MustRun(t, "cat", c.Path(".lockfs/why", marker))
		require.Contains(t, why, "exited with status 0")
	}
}

// TestALockIsFreeAfterACrashAlone: after a signal, and not after an exit, whatever the status.
func TestALockIsFreeAfterACrashAlone(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "m")
	g.Start(t)
	everywhere := append(c.Hosts(), g.Host)
	crashes := map[string]string{
		"SIGKILL":                      "kill -9 $$",
		"SIGTERM":                      "kill $$; sleep 60",
		"SIGINT that is raised again":  "trap 'rm -f none; trap - INT; kill -INT $$' INT; kill -INT $$; sleep 60",
		"SIGKILL by a child":           "sh -c 'kill -9 $PPID'; sleep 60",
		"SIGKILL of another program":   "exec sh -c 'kill -9 $$'",
		"SIGKILL within the same call": "kill -9 $$ & wait",
	}
	exits := map[string]string{
		"success":                  "exit 0",
		"failure":                  "exit 1",
		"a status like a signal":   "exit 137",
		"a trap that exits":        "trap 'exit 143' TERM; kill $$; sleep 60",
		"another program's exit":   "exec true",
		"the parent of a subshell": "(exit 3)",
	}
	for i, h := range everywhere {
		for name, script := range crashes {
			lock := fmt.Sprintf("crash-%d-%x", i, name)
			ended(t, c, h, "bash", "set -C; echo $$ >"+lock+"; "+script)
			c.AwaitGone(t, lock, everywhere...)
			removed := testcluster.LastEvent(t, c.Nodes[0].Events(t), "lock_removed", lock)
			assert.Contains(t, removed.Reason, "was ended by signal", name)
		}
		for name, script := range exits {
			lock := fmt.Sprintf("exit-%d-%x", i, name)
			ended(t, c, h, "bash", "set -C; echo $$ >"+lock+"; "+script)
			for _, other := range everywhere {
				c.AwaitState(t, other, lock, "stale")
			}
			_, err := everywhere[(i+1)%len(everywhere)].Run("bash", "-c", "set -C; echo $$ >"+c.Path(lock))
			require.ErrorContains(t, err, "cannot overwrite existing file", name)
			everywhere[(i+1)%len(everywhere)].MustRun(t, "rm", c.Path(lock)) // a stale lock can be removed from everywhere
		}
	}
}

// TestAHelperTakesALockAndExits: the lock stays, and a program that judges pids takes it from any host.
func TestAHelperTakesALockAndExits(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Hosts()[0], c.Hosts()[1]
	helper := testcluster.StartShell(t, a, c.Mount)
	helper.Must("echo 'set -C; echo $$ >held' >acquire; sh acquire; [ -e held ]")
	c.AwaitState(t, b, "held", "stale")
	helper.Must("! sh acquire 2>/dev/null")
	helper.Must("rm held; sh acquire")
	c.AwaitState(t, b, "held", "stale")
	said, err := b.Run(c.Program, "run", "--format", "pid", "--wait", "20s", c.Path("held"), "--", "cat", c.Path("held"))
	require.NoError(t, err, "a stale lock is taken over")
	require.NotEmpty(t, strings.TrimSpace(said))
	b.MustRun(t, "sh", "-c", "! [ -e "+c.Path("held")+" ]")

	// Formats and rules that say more than the content of a pid file.
	ended(t, c, a, "bash", "set -C; "+testcluster.BeadsContent+" >database; exit 0")
	c.AwaitGone(t, "database", a, b)
	for pattern, flags := range map[string][]string{"creator.lock": {"--holder", "creator"}, "removed.lock": {"--on-stale", "remove"}} {
		c.Nodes[0].SetRule(t, pattern, flags...)
		ended(t, c, b, "bash", "set -C; echo $$ >"+pattern+"; sleep 4; exit 0")
		c.AwaitGone(t, pattern, a, b)
	}
}

// TestAnEndThatNoMountSaw leaves a pid lock stale and in place: it may have been an exit.
func TestAnEndThatNoMountSaw(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "m")
	g.Start(t)
	pid, beads := c.StartHolder(t, g.Host, "pid", testcluster.PidContent), c.StartHolder(t, g.Host, "beads", testcluster.BeadsContent)
	g.Kill()
	pid.Process.Kill()
	beads.Process.Kill()
	g.Start(t)
	c.AwaitGone(t, "beads", c.Hosts()[0], g.Host)
	c.AwaitState(t, c.Hosts()[0], "pid", "stale")
	c.Hosts()[0].MustRun(t, "rm", c.Path("pid"))
}
