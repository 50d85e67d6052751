package kernellocks

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestLockInterrupts sends signals to programs that wait for locks.
func TestLockInterrupts(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3, never...)
	n := c.Nodes[0]
	g := c.AddGuest(t, "m", "--op-timeout", "5s")
	g.Start(t)
	for _, kind := range []struct{ name, take, drop, wait string }{
		{"flock", `flock("f", "ex")`, `flock("f", "un")`, `say(raw_flock, "f", "ex")`},
		{"fcntl", `lock("f", "w")`, `lock("f", "u")`, `say(raw_lock, "f", "w")`},
		{"ofd", `lock("f", "w", ofd=True)`, `lock("f", "u", ofd=True)`, `say(raw_lock, "f", "w", 0, 0, True)`},
	} {
		t.Run(kind.name, func(t *testing.T) {
			holder := testcluster.StartActor(t, c.Nodes[0].Host, c.Mount)
			first, second := testcluster.StartActor(t, g.Host, c.Mount), testcluster.StartActor(t, c.Nodes[2].Host, c.Mount)
			for _, a := range []testcluster.Actor{holder, first, second} {
				a.Must(fmt.Sprintf("opened('f', '%s.lock')", kind.name))
			}
			awaitWaiting := func(of ...string) { n.AwaitAdvisory(t, kind.name+".lock", "waiting", of...) }
			holder.Require(kind.take, "ok")

			// Who was interrupted and does not come again soon has no place any more.
			first.Must(`signals(restart=False)`)
			interrupted := first.Starts(kind.wait)
			awaitWaiting("m")
			first.Process.Signal(unix.SIGALRM)
			require.Equal(t, "EINTR", interrupted())
			if kind.name == "flock" {
				n.AwaitAdvisory(t, kind.name+".lock", "interrupted")
			}

			// Who does has kept it.
			interrupted = first.Starts(kind.wait)
			awaitWaiting("m")
			behind := second.Starts(kind.wait)
			awaitWaiting("m", "c")
			first.Process.Signal(unix.SIGALRM)
			require.Equal(t, "EINTR", interrupted())
			again := first.Starts(kind.wait)

			// With SA_RESTART the system call itself comes again.
			awaitLocking(t, first)
			first.Process.Signal(unix.SIGALRM)
			require.Equal(t, "EINTR", again())
			first.Must(`signals(restart=True)`)
			restarted := first.Starts(kind.wait)
			for range 100 {
				first.Process.Signal(unix.SIGALRM)
				time.Sleep(time.Millisecond)
			}
			awaitLocking(t, first)
			awaitWaiting("m", "c")
			holder.Require(kind.drop, "ok")
			require.Equal(t, "ok", restarted())
			first.Require(kind.drop, "ok")
			require.Equal(t, "ok", behind())
			second.Require(`close("f")`, "ok")
		})
	}

	t.Run("all the time", func(t *testing.T) {
		var says []func() string
		for _, h := range []*hosts.Host{g.Host, c.Nodes[1].Host, g.Host} {
			a := testcluster.StartActor(t, h, c.Mount)
			a.Must(`opened("f", "storm")`)
			says = append(says, a.Starts(`say(flock_under_signals, "f", 15)`))
		}
		for _, said := range says {
			require.Equal(t, "ok", said())
		}
		n.AwaitAdvisory(t, "storm", "held")
		n.AwaitAdvisory(t, "storm", "waiting")
	})

	// The cluster cannot be told that nobody waits any more. It may make a lock of the request before it is.
	t.Run("while cut off", func(t *testing.T) {
		holder, waiter := testcluster.StartActor(t, c.Nodes[0].Host, c.Mount), testcluster.StartActor(t, g.Host, c.Mount)
		for _, a := range []testcluster.Actor{holder, waiter} {
			a.Must(`opened("f", "cut"); signals(restart=False)`)
		}
		holder.Require(`lock("f", "w", 0, 10)`, "ok")
		waiter.Require(`lock("f", "w", 20, 10)`, "ok")
		waits := waiter.Starts(`say(raw_lock, "f", "w", 0, 10)`)
		n.AwaitAdvisory(t, "cut", "waiting", "m")
		g.Host.Cut()
		waiter.Process.Signal(unix.SIGALRM)
		require.Equal(t, "EIO", waits()) // all that it had is given up
		holder.Require(`lock("f", "u")`, "ok")
		g.Host.Heal()
		waiter.Require(`lock("f", "w", 40, 1)`, "EIO")
		holder.Require(`lock("f", "w", 20, 10)`, "EAGAIN") // before the lock delay is over
	})
	c.RequireSameState(t)
}

// awaitLocking waits until a process is in a system call for a lock, and no signal is on its way to it.
func awaitLocking(t testing.TB, a testcluster.Actor) {
	t.Helper()
	hosts.Eventually(t, "flock(2) or fcntl(2)", func() (string, bool) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", a.Process.Pid()))
		status, errStatus := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.Process.Pid()))
		var number int
		_, _ = fmt.Sscan(string(text), &number)
		pending := !bytes.Contains(status, []byte("SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n"))
		return fmt.Sprintf("%s%v %v", text, err, errStatus), !pending && (number == unix.SYS_FLOCK || number == unix.SYS_FCNTL)
	})
}
