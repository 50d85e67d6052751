package faults

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/testcluster"
)

// TestInterruptedWhileCutOff has a program wait for a lock on a host that is cut off, where its request becomes a lock
// that nobody can tell it of. It is interrupted, told that it has no lock, and goes on: what it takes next stays its own. If it
// had something before, it is told that it has lost that.
func TestInterruptedWhileCutOff(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1, "--session-term", "30s")
	g := c.AddGuest(t, "m", "--op-timeout", "2s")
	g.Start(t)
	a, m := testcluster.StartActor(t, c.Nodes[0].Host, c.Mount), testcluster.StartActor(t, g.Host, c.Mount)
	m.Must(`signals(restart=False)`)

	// cutOff has m wait, and be interrupted in vain once it has become the holder.
	cutOff := func(t *testing.T, waits, drop, told string) {
		t.Helper()
		answer := m.Starts(waits)
		c.Nodes[0].AwaitAdvisory(t, "lock", "waiting", "m")
		g.Host.Cut()
		a.Require(drop, "ok")
		m.Process.Signal(unix.SIGALRM)
		require.Equal(t, told, answer())
	}
	for _, kind := range []struct{ name, take, drop, wait, again string }{
		{"flock", `flock("f", "ex")`, `flock("f", "un")`, `say(raw_flock, "f", "ex")`, `flock("f", "ex", wait=True)`},
		{"fcntl", `lock("f", "w")`, `lock("f", "u")`, `say(raw_lock, "f", "w")`, `lock("f", "w", wait=True)`},
		{"ofd", `lock("f", "w", ofd=True)`, `lock("f", "u", ofd=True)`, `say(raw_lock, "f", "w", 0, 0, True)`, `lock("f", "w", wait=True, ofd=True)`},
	} {
		t.Run(kind.name, func(t *testing.T) {
			a.Must(`opened("f", "lock")`)
			m.Must(`opened("f", "lock")`)
			a.Require(kind.take, "ok")
			cutOff(t, kind.wait, kind.drop, "EINTR")
			m.Require(kind.again, "ETIMEDOUT") // the cluster does not answer
			g.Host.Heal()
			m.Insists(kind.again)
			for range 20 {
				a.Require(kind.take, "EAGAIN")
			}
			a.Require(`close("f")`, "ok")
			m.Require(`close("f")`, "ok")
		})
	}
	t.Run("a lock that was to become exclusive", func(t *testing.T) {
		a.Must(`opened("f", "lock")`)
		m.Must(`opened("f", "lock")`)
		m.Require(`lock("f", "r", 0, 8)`, "ok")
		a.Require(`lock("f", "r", 2, 2)`, "ok")
		cutOff(t, `say(raw_lock, "f", "w", 1, 4)`, `lock("f", "u")`, "EIO")
		m.Require(`say(os.pread, files["f"], 1, 0)`, "EIO") // all that it had is lost
		a.Require(`lock("f", "w")`, "EAGAIN")
		g.Host.Heal()
		a.Require(`lock("f", "w", wait=True)`, "ok") // after the lock delay
		m.Require(`lock("f", "r", 20, 1)`, "EIO")
		m.Require(`close("f")`, "ok")
		m.Must(`opened("f", "lock")`)
		m.Require(`lock("f", "r", 20, 1)`, "EAGAIN")
		a.Require(`close("f")`, "ok")
		m.Require(`close("f")`, "ok")
	})
	// The close is told of until the cluster knows, whichever descriptor the locks were taken through.
	t.Run("a file that is closed while cut off", func(t *testing.T) {
		for _, close := range []string{"f", "other"} {
			a.Must(`opened("f", "lock")`)
			m.Must(`opened("f", "lock"); opened("other", "lock")`)
			m.Require(`lock("f", "w")`, "ok")
			g.Host.Cut()
			m.Require(fmt.Sprintf("close(%q)", close), "ok") // after the timeout of an operation
			g.Host.Heal()
			a.Require(`lock("f", "w", wait=True)`, "ok")
			a.Require(`close("f")`, "ok")
			m.Must(`for file in list(files): os.close(files.pop(file))`)
		}
	})
}
