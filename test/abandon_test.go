package test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestInterruptedWhileCutOff has a program wait for a lock on a host that is cut off, where its request becomes a lock
// that nobody can tell it of. It is interrupted, told that it has no lock, and goes on: what it takes next stays its own. If it
// had something before, it is told that it has lost that.
func TestInterruptedWhileCutOff(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, "--session-term", "30s")
	g := c.addGuest(t, "m", "--op-timeout", "2s")
	g.start(t)
	a, m := startActor(t, c.nodes[0].host, c.mount), startActor(t, g.host, c.mount)
	m.must(`signals(restart=False)`)

	// cutOff has m wait, and be interrupted in vain once it has become the holder.
	cutOff := func(t *testing.T, waits, drop, told string) {
		t.Helper()
		answer := m.starts(waits)
		c.nodes[0].awaitAdvisory(t, "lock", "waiting", "m")
		g.host.Cut()
		a.require(drop, "ok")
		m.process.Signal(unix.SIGALRM)
		require.Equal(t, told, answer())
	}
	for _, kind := range []struct{ name, take, drop, wait, again string }{
		{"flock", `flock("f", "ex")`, `flock("f", "un")`, `say(raw_flock, "f", "ex")`, `flock("f", "ex", wait=True)`},
		{"fcntl", `lock("f", "w")`, `lock("f", "u")`, `say(raw_lock, "f", "w")`, `lock("f", "w", wait=True)`},
		{"ofd", `lock("f", "w", ofd=True)`, `lock("f", "u", ofd=True)`, `say(raw_lock, "f", "w", 0, 0, True)`, `lock("f", "w", wait=True, ofd=True)`},
	} {
		t.Run(kind.name, func(t *testing.T) {
			a.must(`opened("f", "lock")`)
			m.must(`opened("f", "lock")`)
			a.require(kind.take, "ok")
			cutOff(t, kind.wait, kind.drop, "EINTR")
			m.require(kind.again, "ETIMEDOUT") // the cluster does not answer
			g.host.Heal()
			m.insists(kind.again)
			for range 20 {
				a.require(kind.take, "EAGAIN")
			}
			a.require(`close("f")`, "ok")
			m.require(`close("f")`, "ok")
		})
	}
	t.Run("a lock that was to become exclusive", func(t *testing.T) {
		a.must(`opened("f", "lock")`)
		m.must(`opened("f", "lock")`)
		m.require(`lock("f", "r", 0, 8)`, "ok")
		a.require(`lock("f", "r", 2, 2)`, "ok")
		cutOff(t, `say(raw_lock, "f", "w", 1, 4)`, `lock("f", "u")`, "EIO")
		m.require(`say(os.pread, files["f"], 1, 0)`, "EIO") // all that it had is lost
		a.require(`lock("f", "w")`, "EAGAIN")
		g.host.Heal()
		a.require(`lock("f", "w", wait=True)`, "ok") // after the lock delay
		m.require(`lock("f", "r", 20, 1)`, "EIO")
		m.require(`close("f")`, "ok")
		m.must(`opened("f", "lock")`)
		m.require(`lock("f", "r", 20, 1)`, "EAGAIN")
		a.require(`close("f")`, "ok")
		m.require(`close("f")`, "ok")
	})
	// The close is told of until the cluster knows, whichever descriptor the locks were taken through.
	t.Run("a file that is closed while cut off", func(t *testing.T) {
		for _, close := range []string{"f", "other"} {
			a.must(`opened("f", "lock")`)
			m.must(`opened("f", "lock"); opened("other", "lock")`)
			m.require(`lock("f", "w")`, "ok")
			g.host.Cut()
			m.require(fmt.Sprintf("close(%q)", close), "ok") // after the timeout of an operation
			g.host.Heal()
			a.require(`lock("f", "w", wait=True)`, "ok")
			a.require(`close("f")`, "ok")
			m.must(`for file in list(files): os.close(files.pop(file))`)
		}
	})
}
