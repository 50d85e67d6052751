package kernellocks

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestDaemonsEndInADeadlock has daemons end while one of their threads tells the kernel of a removal and waits for the lock of
// a directory, which a program has that waits for an answer of that daemon, and there is no majority. Each of the rounds is
// one for each way to end.
func TestDaemonsEndInADeadlock(t *testing.T) {
	t.Parallel()
	const patient = "10m" // so that no call ends by itself
	ends := []struct {
		name string
		end  func(t testing.TB, g *testcluster.Guest)
	}{
		{"SIGTERM", func(t testing.TB, g *testcluster.Guest) { g.Daemon.Signal(unix.SIGTERM) }},
		{"SIGKILL", func(t testing.TB, g *testcluster.Guest) { g.Daemon.Signal(unix.SIGKILL) }},
		{"SIGKILL, with a guard that is stopped", func(t testing.TB, g *testcluster.Guest) {
			guard := awaitGuard(t, g, 0)
			require.NoError(t, unix.Kill(guard, unix.SIGSTOP))
			g.Daemon.Signal(unix.SIGKILL)
			hosts.Eventually(t, "one thread is left", func() (string, bool) {
				stuck := stuckThreads(g.Daemon.Pid())
				left, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", g.Daemon.Pid()))
				return fmt.Sprint(left, stuck, err), len(stuck) == 1 && len(left) <= 2
			})
			require.NoError(t, unix.Kill(guard, unix.SIGCONT))
		}},
		{"SIGKILL, with a second guard", func(t testing.TB, g *testcluster.Guest) {
			guard := awaitGuard(t, g, 0)
			require.NoError(t, unix.Kill(guard, unix.SIGKILL))
			awaitGuard(t, g, guard)
			g.Daemon.Signal(unix.SIGKILL)
		}},
	}
	c := testcluster.StartCluster(t, 3)
	var guests []*testcluster.Guest
	for i := range ends {
		guests = append(guests, c.AddGuest(t, fmt.Sprint("m", i), "--op-timeout", patient))
	}
	for round := range testcluster.Rounds(1, 25) {
		var stuck []*deadlocked
		for _, g := range guests {
			g.Start(t)
			stuck = append(stuck, &deadlocked{guest: g})
		}
		for attempt := 0; !makeDeadlock(t, c, stuck, fmt.Sprintf("%d.%d", round, attempt)); attempt++ {
			untangle(t, c, stuck)
		}
		for i, d := range stuck {
			ends[i].end(t, d.guest)
		}
		for i, d := range stuck {
			d.requireEnd(t, ends[i].name)
			d.guest.Daemon = nil
		}
		for _, n := range c.Nodes {
			n.Server.Thaw()
		}
		c.Leader()
	}
}

// deadlocked is a guest whose daemon is part of a deadlock.
type deadlocked struct {
	guest          *testcluster.Guest
	dir            string
	crowd, watcher *hosts.Process
}

// makeDeadlock makes a deadlock on each of some guests, in a directory of a name for each. Afterwards there is no majority. false: on some
// of them all removals were told before somebody else had the directory's lock.
func makeDeadlock(t testing.TB, c *testcluster.Cluster, on []*deadlocked, name string) (all bool) {
	t.Helper()
	const watched, creators = 5, 8
	leader := c.Leader()
	for _, d := range on {
		var files []string
		d.dir = d.guest.Host.Name() + "-" + name
		leader.Host.MustRun(t, "mkdir", c.Path(d.dir))
		for i := range watched {
			files = append(files, c.Path(d.dir, fmt.Sprint("watched", i)))
		}
		leader.Host.MustRun(t, "touch", files...)
		d.watcher = d.guest.Host.Start("python3", append([]string{testcluster.ClientPath(t, "watcher.py")}, files...)...)
		require.NoError(t, d.watcher.WaitOutput("watches"))
		d.crowd = d.guest.Host.Start("python3", testcluster.ClientPath(t, "crowd.py"), c.Path(d.dir), fmt.Sprint(creators))
		for i := range creators {
			require.NoError(t, d.crowd.WaitOutput(fmt.Sprintln("creates", i)))
		}
	}
	// One of each crowd has the directory's lock when nobody answers, and others wait for it. When the daemons go on, those
	// come next and get no answer either; but the removals were told.
	for _, d := range on {
		d.guest.Daemon.Freeze()
		leader.Host.MustRun(t, "sh", "-c", "rm "+c.Path(d.dir)+"/watched*")
	}
	for _, n := range c.Others(leader) {
		n.Server.Freeze()
	}
	for _, d := range on {
		d.guest.Daemon.Thaw()
	}
	all = true
	for _, d := range on {
		hosts.Eventually(t, "a thread of the daemon on "+d.guest.Host.Name()+" waits for a directory", func() (string, bool) {
			told := strings.Count(d.watcher.Stdout(), "removed") == watched
			stuck := stuckThreads(d.guest.Daemon.Pid())
			all = all && (len(stuck) > 0 || !told)
			return fmt.Sprint(stuck, d.watcher.Stdout()), len(stuck) > 0 || told
		})
	}
	return all
}

// untangle lets everybody go on, and ends those who create.
func untangle(t testing.TB, c *testcluster.Cluster, on []*deadlocked) {
	t.Helper()
	for _, n := range c.Nodes {
		n.Server.Thaw()
	}
	leader := c.Leader()
	for _, d := range on {
		hosts.Eventually(t, "the directory is removed", func() (string, bool) {
			said, err := leader.Host.Run("rm", "-r", c.Path(d.dir))
			return fmt.Sprint(said, err), err == nil
		})
		require.NoError(t, d.crowd.WaitOutput("all have ended"))
		d.watcher.Kill()
	}
}

// stuckThreads answers which threads of a process tell the kernel of a removal.
func stuckThreads(pid int) (stuck []string) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, thread := range threads {
		stack, err := os.ReadFile(filepath.Join(thread, "stack"))
		if err == nil && bytes.Contains(stack, []byte("fuse_reverse_inval_entry")) {
			stuck = append(stuck, filepath.Base(thread))
		}
	}
	return stuck
}

// requireEnd requires that the daemon ends, and everybody who waits for it.
func (d *deadlocked) requireEnd(t testing.TB, how string) {
	t.Helper()
	_ = d.guest.Daemon.Wait() // it may have been killed
	select {
	case <-d.guest.Daemon.Ended():
	default:
		t.Fatalf("%s: the daemon has not ended", how)
	}
	require.NoError(t, d.crowd.Wait(), how)
	require.Contains(t, d.crowd.Stdout(), "all have ended", how)
	d.watcher.Kill()
	hosts.Eventually(t, how+": nobody waits any more, and nothing is left of the daemon", func() (string, bool) {
		states := d.guest.Host.MustRun(t, "ps", "-eo", "pid,state,args", "--no-headers")
		for line := range strings.Lines(states) {
			fields := strings.Fields(line)
			if fields[1] == "D" || fields[1] == "Z" || strings.Contains(line, "lockfs") {
				return states, false
			}
		}
		return states, true
	})
}

// awaitGuard waits for a guard of the daemon, other than one.
func awaitGuard(t testing.TB, g *testcluster.Guest, other int) (pid int) {
	t.Helper()
	hosts.Eventually(t, "the daemon has a guard", func() (string, bool) {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", g.Daemon.Pid()))
		for _, thread := range threads {
			text, _ := os.ReadFile(thread)
			for _, field := range strings.Fields(string(text)) {
				command, _ := os.ReadFile("/proc/" + field + "/cmdline")
				if pid, _ = strconv.Atoi(field); pid != other && strings.HasPrefix(string(command), "lockfs\x00guard\x00") {
					return "", true
				}
			}
		}
		return fmt.Sprint(threads), false
	})
	return pid
}
