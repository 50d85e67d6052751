package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
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
	c := startCluster(t, 3)
	g := c.addGuest(t, "m")
	g.start(t)
	everywhere := append(c.hosts(), g.host)
	c.nodes[0].set(t, "*.lock", "--holder", "creator")
	for kind, take := range createdLocks {
		t.Run(kind, func(t *testing.T) {
			// Busy machines are late sometimes, and not each time.
			hosts.Eventually(t, "it is gone within a second", func() (string, bool) {
				for _, h := range []*hosts.Host{g.host, c.nodes[1].host} {
					if took := c.endCreator(t, h, everywhere, kind, take); took > time.Second {
						return took.String(), false
					}
				}
				return "", true
			})
		})
	}

	t.Run("kept", func(t *testing.T) {
		c.nodes[0].set(t, "kept.lock", "--holder", "creator", "--on-stale", "keep")
		holder := startPython(t, g.host, c.mount)
		holder.must(fmt.Sprintf(createdLocks["empty"], "kept.lock"))
		c.requireHeld(t, "kept.lock", everywhere...)
		holder.process.Kill()
		for _, h := range everywhere {
			c.awaitState(t, h, "kept.lock", "stale")
		}
		c.nodes[2].host.MustRun(t, "rm", c.path("kept.lock"))
	})
}

// endCreator has a process make a lock and kills it. It answers how long the lock was there still, by the cluster's clock.
func (c *cluster) endCreator(t testing.TB, h *hosts.Host, everywhere []*hosts.Host, kind, take string) time.Duration {
	t.Helper()
	const lock = "creator.lock"
	holder := startPython(t, h, c.mount)
	holder.must(fmt.Sprintf(take, lock))
	c.requireHeld(t, lock, everywhere...)
	for _, other := range everywhere {
		if other != h {
			_, err := other.Run("rm", "-d", c.path(lock))
			require.ErrorContains(t, err, "Device or resource busy", "%s on %s", kind, other.Name())
			_, err = other.Run("mv", c.path(lock), c.path("moved"))
			require.ErrorContains(t, err, "Device or resource busy", "%s on %s", kind, other.Name())
		}
	}
	killed := time.Now()
	holder.process.Kill()
	c.awaitGone(t, lock, everywhere...)
	events := c.nodes[0].events(t)
	told := story(events, lock)
	require.Equal(t, []string{"lock_stale", "lock_removed"}, told[len(told)-2:])
	removed := lastEvent(t, events, "lock_removed", lock)
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
	c := startCluster(t, 1)
	a := c.nodes[0]
	g := c.addGuest(t, "m")
	g.start(t)
	everywhere := []*hosts.Host{a.host, g.host}
	for _, pattern := range []string{"*.lock", "*.lock/*"} {
		a.set(t, pattern, "--holder", "creator")
	}
	scripts := make(map[string]*shell)
	for kind, step := range scriptLocks {
		scripts[kind] = startShell(t, g.host, c.mount)
		scripts[kind].must(fmt.Sprintf(step, scriptLock(kind)))
	}
	c.awaitMakersEnds(t, g.host, a.host)
	for kind, script := range scripts {
		tells := scriptLock(kind)
		if kind == "directory" {
			tells += "/pid" // where kv has a directory, too
		}
		c.requireHeld(t, tells, everywhere...)
		_, err := a.host.Run("rm", "-r", c.path(scriptLock(kind)))
		require.ErrorContains(t, err, "Device or resource busy", kind)
		pid := scripts[kind].must("echo $$")
		facts, err := c.facts(a.host, tells)
		require.NoError(t, err)
		require.Equal(t, pid, facts["pid"]+"\n", kind)
		script.process.Kill()
		c.awaitGone(t, scriptLock(kind), everywhere...)
	}

	t.Run("a script that a script runs", func(t *testing.T) {
		outer := startShell(t, g.host, c.mount)
		outer.must("sh -c 'touch lasts.lock; sleep 1000' & until [ -e lasts.lock ]; do sleep 0.1; done")
		outer.must("sh -c 'touch ends.lock'")
		outer.must(`until [ "$(ps -o etimes= -p $!)" -gt 4 ]; do sleep 0.2; done; kill -9 $!`)
		c.awaitGone(t, "lasts.lock", everywhere...)
		c.requireHeld(t, "ends.lock", everywhere...)
		outer.must("rm ends.lock")
	})
}

func scriptLock(kind string) string { return fmt.Sprintf("%x.lock", kind) }

// awaitMakersEnds waits until the mount of a host has told of all processes that have ended there: it does so in order.
func (c *cluster) awaitMakersEnds(t testing.TB, h, other *hosts.Host) {
	t.Helper()
	last := startPython(t, h, c.mount)
	last.must(fmt.Sprintf(createdLocks["empty"], "last.lock"))
	last.process.Kill()
	c.awaitGone(t, "last.lock", other)
}

// TestCreatorOfAMountThatFails ends or stops a mount between the end of touch(1), and of what is like it, and the time when
// one can know that it made its lock for somebody else.
func TestCreatorOfAMountThatFails(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	a := c.nodes[0]
	g := c.addGuest(t, "m")
	g.start(t)
	a.set(t, "*.lock", "--holder", "creator")
	const toucher = "sh -c ': > %[1]s.lock; echo > /run/made-%[1]s; exec sleep 1000' & until [ -e /run/made-%[1]s ]; do sleep 0.01; done"

	t.Run("killed", func(t *testing.T) {
		script, dead := startShell(t, g.host, c.mount), startShell(t, g.host, c.mount)
		script.must("touch touched.lock; " + fmt.Sprintf(toucher, "killed"))
		dead.must("touch dead.lock")
		g.kill()
		script.must("kill -9 $!; wait $! || :")
		dead.process.Kill()
		g.start(t)
		c.awaitGone(t, "dead.lock", a.host)
		c.awaitMakersEnds(t, g.host, a.host)
		c.requireHeld(t, "touched.lock", a.host, g.host)
		c.requireHeld(t, "killed.lock", a.host, g.host)
		script.process.Kill()
		c.awaitGone(t, "touched.lock", a.host)
		c.awaitGone(t, "killed.lock", a.host)
	})

	t.Run("frozen", func(t *testing.T) {
		script := startShell(t, g.host, c.mount)
		script.must("touch touched.lock; " + fmt.Sprintf(toucher, "frozen"))
		g.daemon.Freeze()
		frozen := time.Now()
		script.must("kill -9 $!; wait $! || :")
		hosts.Eventually(t, "it was frozen for longer than touch takes", func() (string, bool) {
			return "", time.Since(frozen) > 3500*time.Millisecond
		})
		g.daemon.Thaw()
		c.awaitMakersEnds(t, g.host, a.host)
		c.requireHeld(t, "touched.lock", a.host, g.host)
		c.requireHeld(t, "frozen.lock", a.host, g.host)
		script.process.Kill()
		c.awaitGone(t, "touched.lock", a.host)
		c.awaitGone(t, "frozen.lock", a.host)
	})
}

// TestCreatorOutlivesServers has servers end and read snapshots while a script has its lock.
func TestCreatorOutlivesServers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, "--snapshot-entries", "100")
	g := c.addGuest(t, "m")
	g.start(t)
	c.nodes[0].set(t, "*.lock", "--holder", "creator")
	script, other := startShell(t, g.host, c.mount), startShell(t, g.host, c.mount)
	script.must("touch touched.lock; mkdir made.lock")
	other.must("touch other.lock")
	g.host.MustRun(t, "python3", "-c", "import os, sys\nfor i in range(150): os.mkdir(sys.argv[1]); os.rmdir(sys.argv[1])", c.path("d"))
	leader := c.leader()
	leader.kill()
	c.awaitMakersEnds(t, g.host, c.others(leader)[0].host)
	leader.start(t)
	for _, n := range c.nodes {
		n.kill()
	}
	for _, n := range c.nodes {
		n.launch()
	}
	for _, n := range c.nodes {
		n.awaitReady(t)
	}
	for _, lock := range []string{"touched.lock", "made.lock", "other.lock"} {
		c.requireHeld(t, lock, append(c.hosts(), g.host)...)
		_, err := c.nodes[0].host.Run("rm", "-d", c.path(lock))
		require.ErrorContains(t, err, "Device or resource busy")
	}
	leader = c.leader()
	leader.kill()
	script.process.Kill()
	c.awaitGone(t, "touched.lock", c.others(leader)[0].host, g.host)
	c.awaitGone(t, "made.lock", c.others(leader)[0].host, g.host)
	c.requireHeld(t, "other.lock", c.others(leader)[0].host, g.host)
	leader.start(t)
	c.requireHeld(t, "other.lock", leader.host)
	c.requireSameState(t)
}
