package protocols

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// createdLocks are locks in which nothing tells who holds them, or not in a way that lockfs knows; %[1]s is their name. Each
// is a step for Python.
var createdLocks = map[string]string{
	"empty":        `os.close(os.open("%[1]s", os.O_CREAT | os.O_EXCL | os.O_WRONLY))`,
	"pid and host": `open("%[1]s", "x").write(str(os.getpid()) + "\n" + os.uname().nodename + "\n")`,
	"JSON":         `open("%[1]s", "x").write('{"pid": ' + str(os.getpid()) + ', "uuid": "0b6e"}')`,
	"directory":    `os.mkdir("%[1]s")`,
}

// TestDeadCreator ends processes that made locks, where a rule says that who made a lock holds it.
func TestDeadCreator(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	g := c.AddGuest(t, "m")
	g.Start(t)
	everywhere := append(c.Hosts(), g.Host)
	c.Nodes[0].SetRule(t, "*.lock", "--holder", "creator")
	for kind, take := range createdLocks {
		t.Run(kind, func(t *testing.T) {
			// Busy machines are late sometimes, and not each time.
			hosts.Eventually(t, "it is gone within a second", func() (string, bool) {
				for _, h := range []*hosts.Host{g.Host, c.Nodes[1].Host} {
					if took := endCreator(t, c, h, everywhere, kind, take); took > time.Second {
						return took.String(), false
					}
				}
				return "", true
			})
		})
	}

	t.Run("kept", func(t *testing.T) {
		c.Nodes[0].SetRule(t, "kept.lock", "--holder", "creator", "--on-stale", "keep")
		holder := testcluster.StartPython(t, g.Host, c.Mount)
		holder.Must(fmt.Sprintf(createdLocks["empty"], "kept.lock"))
		c.RequireHeld(t, "kept.lock", everywhere...)
		holder.Process.Kill()
		for _, h := range everywhere {
			c.AwaitState(t, h, "kept.lock", "stale")
		}
		c.Nodes[2].Host.MustRun(t, "rm", c.Path("kept.lock"))
	})
}

// endCreator has a process make a lock and kills it. It answers how long the lock was there still, by the cluster's clock.
func endCreator(t testing.TB, c *testcluster.Cluster, h *hosts.Host, everywhere []*hosts.Host, kind, take string) time.Duration {
	t.Helper()
	const lock = "creator.lock"
	holder := testcluster.StartPython(t, h, c.Mount)
	holder.Must(fmt.Sprintf(take, lock))
	c.RequireHeld(t, lock, everywhere...)
	for _, other := range everywhere {
		if other != h {
			_, err := other.Run("rm", "-d", c.Path(lock))
			require.ErrorContains(t, err, "Device or resource busy", "%s on %s", kind, other.Name())
			_, err = other.Run("mv", c.Path(lock), c.Path("moved"))
			require.ErrorContains(t, err, "Device or resource busy", "%s on %s", kind, other.Name())
		}
	}
	killed := time.Now()
	holder.Process.Kill()
	c.AwaitGone(t, lock, everywhere...)
	events := c.Nodes[0].Events(t)
	told := testcluster.Story(events, lock)
	require.Equal(t, []string{"lock_stale", "lock_removed"}, told[len(told)-2:])
	removed := testcluster.LastEvent(t, events, "lock_removed", lock)
	assert.Equal(t, h.Name(), removed.Host)
	assert.Contains(t, removed.Reason, fmt.Sprint(removed.PID), "the evidence")
	return removed.Timestamp.Sub(killed)
}

// scriptLocks are steps of a shell script that has a program or a subshell make a lock, which then ends at once.
var scriptLocks = map[string]string{
	"touch":        "touch %[1]s",
	"mkdir":        "mkdir %[1]s",
	"mktemp, ln":   "t=$(mktemp -p .) && ln $t %[1]s && rm $t",
	"mv":           "echo $$ $(hostname) > t; mv -n t %[1]s",
	"ln -s":        "ln -s $(hostname):$$ %[1]s",
	"subshell":     "(set -C; > %[1]s)",
	"with content": "(set -C; echo it is mine > %[1]s)",
	"substitution": `x=$( (set -C; echo $$ > %[1]s && sh -c true) 2>&1)`,
	"pipeline":     "echo | tee %[1]s | cat",
	"directory":    "mkdir %[1]s && echo $$ > %[1]s/pid",
}

// TestScriptIsTheCreator has scripts make locks by means of other programs.
func TestScriptIsTheCreator(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	a := c.Nodes[0]
	g := c.AddGuest(t, "m")
	g.Start(t)
	everywhere := []*hosts.Host{a.Host, g.Host}
	for _, pattern := range []string{"*.lock", "*.lock/*"} {
		a.SetRule(t, pattern, "--holder", "creator", "--any-file")
	}
	scripts := make(map[string]*testcluster.Shell)
	for kind, step := range scriptLocks {
		scripts[kind] = testcluster.StartShell(t, g.Host, c.Mount)
		scripts[kind].Must(fmt.Sprintf(step, scriptLock(kind)))
	}
	awaitMakersEnds(t, c, g.Host, a.Host)
	for kind, script := range scripts {
		tells := scriptLock(kind)
		if kind == "directory" {
			tells += "/pid" // where kv has a directory, too
		}
		c.RequireHeld(t, tells, everywhere...)
		_, err := a.Host.Run("rm", "-r", c.Path(scriptLock(kind)))
		require.ErrorContains(t, err, "Device or resource busy", kind)
		pid := scripts[kind].Must("echo $$")
		facts, err := c.Facts(a.Host, tells)
		require.NoError(t, err)
		require.Equal(t, pid, facts["pid"]+"\n", kind)
		script.Process.Kill()
		c.AwaitGone(t, scriptLock(kind), everywhere...)
	}

	t.Run("a script that a script runs", func(t *testing.T) {
		outer := testcluster.StartShell(t, g.Host, c.Mount)
		outer.Must("sh -c 'touch lasts.lock; sleep 1000' & until [ -e lasts.lock ]; do sleep 0.1; done")
		outer.Must("sh -c 'touch ends.lock'")
		outer.Must(`until [ "$(ps -o etimes= -p $!)" -gt 4 ]; do sleep 0.2; done; kill -9 $!`)
		c.AwaitGone(t, "lasts.lock", everywhere...)
		c.RequireHeld(t, "ends.lock", everywhere...)
		outer.Must("rm ends.lock")
	})
}

func scriptLock(kind string) string { return fmt.Sprintf("%x.lock", kind) }

// awaitMakersEnds waits until the mount of a host has told of all processes that have ended there: it does so in order.
func awaitMakersEnds(t testing.TB, c *testcluster.Cluster, h, other *hosts.Host) {
	t.Helper()
	last := testcluster.StartPython(t, h, c.Mount)
	last.Must(fmt.Sprintf(createdLocks["empty"], "last.lock"))
	last.Process.Kill()
	c.AwaitGone(t, "last.lock", other)
}

// TestCreatorOfAMountThatFails ends or stops a mount between the end of touch(1), and of what is like it, and the time when
// one can know that it made its lock for somebody else.
func TestCreatorOfAMountThatFails(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	a := c.Nodes[0]
	g := c.AddGuest(t, "m")
	g.Start(t)
	a.SetRule(t, "*.lock", "--holder", "creator", "--any-file") // touch creates no exclusive name
	const toucher = "sh -c ': > %[1]s.lock; echo > /run/made-%[1]s; exec sleep 1000' & until [ -e /run/made-%[1]s ]; do sleep 0.01; done"

	t.Run("killed", func(t *testing.T) {
		script, dead := testcluster.StartShell(t, g.Host, c.Mount), testcluster.StartShell(t, g.Host, c.Mount)
		script.Must("touch touched.lock; " + fmt.Sprintf(toucher, "killed"))
		dead.Must("touch dead.lock")
		g.Kill()
		script.Must("kill -9 $!; wait $! || :")
		dead.Process.Kill()
		g.Start(t)
		c.AwaitGone(t, "dead.lock", a.Host)
		awaitMakersEnds(t, c, g.Host, a.Host)
		c.RequireHeld(t, "touched.lock", a.Host, g.Host)
		c.RequireHeld(t, "killed.lock", a.Host, g.Host)
		script.Process.Kill()
		c.AwaitGone(t, "touched.lock", a.Host)
		c.AwaitGone(t, "killed.lock", a.Host)
	})

	t.Run("frozen", func(t *testing.T) {
		script := testcluster.StartShell(t, g.Host, c.Mount)
		script.Must("touch touched.lock; " + fmt.Sprintf(toucher, "frozen"))
		g.Daemon.Freeze()
		frozen := time.Now()
		script.Must("kill -9 $!; wait $! || :")
		hosts.Eventually(t, "it was frozen for longer than touch takes", func() (string, bool) {
			return "", time.Since(frozen) > 3500*time.Millisecond
		})
		g.Daemon.Thaw()
		awaitMakersEnds(t, c, g.Host, a.Host)
		c.RequireHeld(t, "touched.lock", a.Host, g.Host)
		c.RequireHeld(t, "frozen.lock", a.Host, g.Host)
		script.Process.Kill()
		c.AwaitGone(t, "touched.lock", a.Host)
		c.AwaitGone(t, "frozen.lock", a.Host)
	})
}

// TestCreatorOutlivesServers has servers end and read snapshots while a script has its lock.
func TestCreatorOutlivesServers(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3, "--snapshot-entries", "100")
	g := c.AddGuest(t, "m")
	g.Start(t)
	c.Nodes[0].SetRule(t, "*.lock", "--holder", "creator", "--any-file") // touch creates no exclusive name
	script, other := testcluster.StartShell(t, g.Host, c.Mount), testcluster.StartShell(t, g.Host, c.Mount)
	script.Must("touch touched.lock; mkdir made.lock")
	other.Must("touch other.lock")
	g.Host.MustRun(t, "python3", "-c", "import os, sys\nfor i in range(150): os.mkdir(sys.argv[1]); os.rmdir(sys.argv[1])", c.Path("d"))
	leader := c.Leader()
	leader.Kill()
	awaitMakersEnds(t, c, g.Host, c.Others(leader)[0].Host)
	leader.Start(t)
	for _, n := range c.Nodes {
		n.Kill()
	}
	for _, n := range c.Nodes {
		n.Launch()
	}
	for _, n := range c.Nodes {
		n.AwaitReady(t)
	}
	for _, lock := range []string{"touched.lock", "made.lock", "other.lock"} {
		c.RequireHeld(t, lock, append(c.Hosts(), g.Host)...)
		_, err := c.Nodes[0].Host.Run("rm", "-d", c.Path(lock))
		require.ErrorContains(t, err, "Device or resource busy")
	}
	leader = c.Leader()
	leader.Kill()
	script.Process.Kill()
	c.AwaitGone(t, "touched.lock", c.Others(leader)[0].Host, g.Host)
	c.AwaitGone(t, "made.lock", c.Others(leader)[0].Host, g.Host)
	c.RequireHeld(t, "other.lock", c.Others(leader)[0].Host, g.Host)
	leader.Start(t)
	c.RequireHeld(t, "other.lock", leader.Host)
	c.RequireSameState(t)
}
