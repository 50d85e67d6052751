package kernellocks

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestLockEnds has holders end, and mounts that nobody uses any more: nothing is delayed.
func TestLockEnds(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1, never...)
	n := c.Nodes[0]
	next := testcluster.StartActor(t, n.Host, c.Mount)
	g := c.AddGuest(t, "m")
	g.Start(t)
	next.Must(`opened("f", "lock")`)
	for _, kind := range []struct{ take, drop, wait string }{
		{`flock("f", "ex")`, `flock("f", "un")`, `flock("f", "ex", wait=True)`},
		{`lock("f", "w")`, `lock("f", "u")`, `lock("f", "w", wait=True)`},
		{`lock("f", "w", ofd=True)`, `lock("f", "u", ofd=True)`, `lock("f", "w", wait=True, ofd=True)`},
	} {
		holder := testcluster.StartActor(t, g.Host, c.Mount)
		holder.Must(`opened("f", "lock")`)
		holder.Require(kind.take, "ok")
		holder.Process.Kill()
		next.Require(kind.wait, "ok")
		next.Require(kind.drop, "ok")
	}
	// The kernel may not have told of the close before the mount ends.
	for range 5 {
		for _, end := range []func(){
			func() { g.Host.MustRun(t, "sh", "-c", "flock $1/lock true; umount $1", "sh", c.Mount) },
			func() {
				g.Host.MustRun(t, "sh", "-c", "flock $1/lock true; kill $2", "sh", c.Mount, g.HostPID(t))
			},
		} {
			end()
			require.NoError(t, g.Daemon.Wait())
			require.Zero(t, testcluster.CountMounts(t, g.Host, c.Mount))
			next.Require(`flock("f", "ex", wait=True)`, "ok")
			next.Require(`flock("f", "un")`, "ok")
			g.Start(t)
		}
	}
}

// TestMountThatEndsWhileInUse has a mount told to end while programs there have a lock and wait for it. They learn of it;
// until the lock delay is over, nobody has what they had.
func TestMountThatEndsWhileInUse(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1, never...)
	n := c.Nodes[0]
	g := c.AddGuest(t, "m")
	next := testcluster.StartActor(t, n.Host, c.Mount)
	for round := range testcluster.Rounds(1, 100) {
		lock := fmt.Sprint("lock", round)
		g.Start(t)
		holder, waiter := testcluster.StartActor(t, g.Host, c.Mount), testcluster.StartActor(t, g.Host, c.Mount)
		for _, a := range []testcluster.Actor{holder, waiter, next} {
			a.Must(fmt.Sprintf(`opened("f", %q)`, lock))
		}
		holder.Require(`flock("f", "ex")`, "ok")
		waits := waiter.Starts(`flock("f", "ex", wait=True)`)
		n.AwaitAdvisory(t, lock, "waiting", "m")
		require.NoError(t, g.Daemon.Stop())
		require.Contains(t, []string{"EIO", "ENOTCONN", "ECONNABORTED"}, waits())
		n.AwaitSession(t, "m", "the session ends with the mount", testcluster.NoSession)
		n.AwaitAdvisory(t, lock, "waiting")
		next.Require(`flock("f", "sh")`, "EAGAIN")
		next.Require(`close("f")`, "ok")
		for _, a := range []testcluster.Actor{holder, waiter} {
			a.Process.Kill()
		}
	}
}

// TestServerThatStopsWhileInUse has the disk of a server fail while a program on its mount has a lock.
func TestServerThatStopsWhileInUse(t *testing.T) {
	t.Parallel()
	c := testcluster.NewCluster(t, never...)
	for range 3 {
		n := c.Add(t)
		if n.Name == "b" {
			n.Host.MustRun(t, "sh", "-ec", `mkdir "$1"; truncate -s 64M "$1.disk"; mkfs.ext4 -q "$1.disk"; mount -o loop "$1.disk" "$1"`, "sh", n.Data)
		}
		n.Start(t)
	}
	a, b := c.Nodes[0], c.Nodes[1]
	holder, next := testcluster.StartActor(t, b.Host, c.Mount), testcluster.StartActor(t, a.Host, c.Mount)
	for _, actor := range []testcluster.Actor{holder, next} {
		actor.Must(`opened("f", "lock")`)
	}
	holder.Require(`flock("f", "ex")`, "ok")
	b.Host.MustRun(t, "mount", "-o", "remount,abort", b.Data)
	next.Must(`open("content", "wb").write(b"x")`)
	require.Error(t, b.Server.Wait(), "it cannot go on")
	b.Server = nil
	a.AwaitSession(t, "b", "the session ends with the mount", testcluster.NoSession)
	next.Require(`flock("f", "sh")`, "EAGAIN")
}
