package protocols

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// untilTold runs until a file on the local disk says that it may end, and tells in another that it was told to.
const untilTold = `trap 'echo told > "$1/told"; exit 3' TERM
echo "ready pid=$$"
until [ -e "$1/end" ]; do sleep 0.02; done`

// startRun starts `lockfs run` of untilTold, with the directory where that is told, and waits until it runs.
func startRun(t testing.TB, c *testcluster.Cluster, h *hosts.Host, lock string, flags ...string) (run *hosts.Process, dir string) {
	t.Helper()
	dir = t.TempDir()
	args := append([]string{"run", c.Path(lock)}, flags...)
	run = h.Start(c.Program, append(args, "--", "bash", "-c", untilTold, "bash", dir)...)
	require.NoError(t, run.WaitOutput("ready pid="))
	require.NoError(t, run.WaitOutput("\n"))
	return run, dir
}

func awaitFile(t testing.TB, path string) {
	t.Helper()
	hosts.Eventually(t, path, func() (string, bool) {
		found, _ := filepath.Glob(path)
		return "", len(found) == 1
	})
}

// awaitEnd waits until a process has ended.
func awaitEnd(t testing.TB, h *hosts.Host, pid string) {
	t.Helper()
	hosts.Eventually(t, "process "+pid+" ends", func() (string, bool) {
		_, err := h.Run("kill", "-0", pid)
		return fmt.Sprint(err), err != nil
	})
}

// TestRunKilled kills `lockfs run`: the command is told to end, and then the lock is free on all hosts.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	a.MustRun(t, "mkdir", c.Path(".beads"))
	for lock, format := range map[string]string{
		"pid": "pid", ".beads/.exclusive-lock": "beads", "semaphore": "semaphore", "swarm.lock": "swarm", "tower.lock": "tower",
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			run, dir := startRun(t, c, a, lock, "--format", format)
			_, command, _ := strings.Cut(strings.TrimSpace(run.Stdout()), "pid=")
			a.MustRun(t, "kill", "-0", command)
			next := b.Start(c.Program, "run", "--format", format, c.Path(lock), "--", "echo", "mine")
			run.Kill()
			require.NoError(t, next.Wait(), next.Log())
			require.Equal(t, "mine\n", next.Stdout())
			awaitFile(t, filepath.Join(dir, "told"))
			awaitEnd(t, a, command)
		})
	}
}

// inOtherSession starts a descendant in another session that has lost its parent and ignores SIGTERM, and says its pid.
const inOtherSession = `(setsid sh -c 'trap "" TERM; echo "ready pid=$$"; while :; do sleep 0.1; done' &); exec sleep 600`

// TestRunKilledLeavesNoProcessBehind kills `lockfs run`, and its worker, which the lock names. Whenever another host has the
// lock, no process is left of what ran under it before.
func TestRunKilledLeavesNoProcessBehind(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	a.MustRun(t, "mkdir", c.Path(".beads"))
	for lock, format := range map[string]string{"pid": "pid", ".beads/.exclusive-lock": "beads"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			for _, kill := range []string{"lockfs", "worker", "both"} {
				run := a.Start(c.Program, "run", "--format", format, "--grace", "1s", c.Path(lock), "--", "sh", "-c", inOtherSession)
				require.NoError(t, run.WaitOutput("ready pid="))
				require.NoError(t, run.WaitOutput("\n"))
				_, straggler, _ := strings.Cut(strings.TrimSpace(run.Stdout()), "pid=")
				holder := c.Xattr(t, b, lock, "pid")
				next := b.Start(c.Program, "run", "--format", format, c.Path(lock), "--", "echo", "mine")
				switch kill {
				case "lockfs":
					run.Kill()
				case "worker":
					a.MustRun(t, "kill", "-9", holder)
				case "both":
					run.Freeze()
					a.MustRun(t, "kill", "-9", holder)
					run.Kill()
				}
				if kill == "both" { // nothing is left that could end it
					c.RequireHeld(t, lock, a, b)
					a.MustRun(t, "kill", "-0", straggler)
					a.MustRun(t, "kill", "-9", straggler)
				}
				require.NoError(t, next.Wait(), next.Log())
				require.Equal(t, "mine\n", next.Stdout())
				state, err := a.Run("sh", "-c", `sed -n 's/^State:\t//p' /proc/$1/status`, "sh", straggler)
				ended := err != nil || state == "" || strings.HasPrefix(state, "Z") // nothing may have waited for it yet
				require.True(t, ended, "%s: %s still runs: %s", kill, straggler, state)
			}
		})
	}
}

// TestRunLosesItsLock takes the locks of running commands away by force, from another host.
func TestRunLosesItsLock(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	for _, format := range []string{"semaphore", "tower", "swarm", "pid"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			lock := format + ".lock"
			run, dir := startRun(t, c, a, lock, "--format", format)
			b.MustRun(t, c.Program, "rm", "--force", c.Path(lock))
			awaitFile(t, filepath.Join(dir, "told"))
			require.ErrorContains(t, run.Wait(), "exit status 124")
			require.Contains(t, run.Log(), "the lock was lost while the command ran")
		})
	}
}

// TestRunLosesItsLockToData puts a data file in the place of the locks of running commands. It has no token, but another
// inode number.
func TestRunLosesItsLockToData(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	for _, format := range []string{"semaphore", "tower", "swarm", "pid", "beads"} {
		for way, replace := range map[string]func(t *testing.T, path string){
			"renamed": func(t *testing.T, path string) {
				remove := map[bool]string{true: `rm -f "$1"`}[strings.Contains(path, "beads")] // mv cannot replace a live one
				a.MustRun(t, "sh", "-c", `echo data > "$1.data"; `+remove+`
					mv -f "$1.data" "$1"`, "sh", path)
			},
			"created": func(t *testing.T, path string) { a.MustRun(t, "sh", "-c", `rm -f "$1"; touch "$1"`, "sh", path) },
			"forced": func(t *testing.T, path string) {
				b.MustRun(t, c.Program, "rm", "--force", path)
				b.MustRun(t, "touch", path)
			},
		} {
			t.Run(format+"/"+way, func(t *testing.T) {
				t.Parallel()
				dir := format + "-" + way
				a.MustRun(t, "mkdir", c.Path(dir))
				lock := filepath.Join(dir, map[bool]string{true: ".exclusive-lock", false: "x.lock"}[format == "beads"])
				run, dir := startRun(t, c, a, lock, "--format", format)
				replace(t, c.Path(lock))
				awaitFile(t, filepath.Join(dir, "told"))
				require.ErrorContains(t, run.Wait(), "exit status 124")
				require.Contains(t, run.Log(), "the lock was lost while the command ran")
				require.NotContains(t, run.Log(), "mounted")
				a.MustRun(t, "test", "-e", c.Path(lock))
			})
		}
	}
}

// TestRunHearsThatItsMountHangs: who cannot renew a lock has lost it when it is stale, also while whatever asks for it hangs.
func TestRunHearsThatItsMountHangs(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "guest")
	g.Start(t)
	c.Nodes[0].SetRule(t, "hung", "--stale-after", "10s")
	run, dir := startRun(t, c, g.Host, "hung")
	g.Daemon.Freeze()
	defer g.Daemon.Thaw()
	awaitFile(t, filepath.Join(dir, "told"))
	g.Daemon.Thaw()
	require.ErrorContains(t, run.Wait(), "exit status 124")
	require.Contains(t, run.Log(), "the lock was lost while the command ran")
}

// TestRunIsGivenUp: a signal ends a run whose command has ended, though its lock cannot be released. It is released later.
func TestRunIsGivenUp(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "guest")
	g.Start(t)
	run, dir := startRun(t, c, g.Host, "hung")
	_, command, _ := strings.Cut(strings.TrimSpace(run.Stdout()), "pid=")
	g.Daemon.Freeze()
	defer g.Daemon.Thaw()
	g.Host.MustRun(t, "touch", filepath.Join(dir, "end"))
	awaitEnd(t, g.Host, command)
	run.Signal(syscall.SIGTERM)
	<-run.Ended()
	require.Contains(t, run.Log(), "the lock is released when it responds again")
	g.Daemon.Thaw()
	require.ErrorContains(t, run.Wait(), "exit status 143")
	c.AwaitGone(t, "hung", c.Nodes[0].Host)
}

// TestSignalsEndWhatHangs: a mount does not answer, first since its daemon is stopped, then since its network is cut, when the
// daemon has read the requests, and the kernel lets no process go that waits for them. Signals end the commands all the same,
// and no lock stays that is acquired later.
func TestSignalsEndWhatHangs(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	node := c.Nodes[0].Host
	g := c.AddGuest(t, "guest")
	g.Start(t)
	node.MustRun(t, "mkdir", c.Path("locks"), c.Path("beads"), c.Path("slots"))
	for how, hang := range map[string]struct{ begin, end func() }{
		"stopped": {g.Daemon.Freeze, g.Daemon.Thaw},
		"cut":     {g.Host.Cut, g.Host.Heal},
	} {
		hang.begin()
		var started []*hosts.Process
		for _, call := range []string{
			"run L/run -- true", "run --slots 2 L/../slots -- true", "run --once-per 1h L/turn -- true", "semaphore run L/s -- true",
			"semaphore acquire L/semaphore --pid 1", "swarm acquire swarm w", "beads acquire L/../beads --holder h --pid 1",
			"tower acquire tower --request-id r --intent i --intent-version 1", "tower check tower", "why L/why", "rm L/rm", "wait L/wait",
		} {
			command := append([]string{"SWARM_STATE_DIR=" + c.Path(), "TOWER_LOCK_DIR=" + c.Path("locks"), c.Program},
				strings.Fields(strings.ReplaceAll(call, "L/", c.Path("locks")+"/"))...)
			started = append(started, g.Host.Start("env", command...))
		}
		hosts.Eventually(t, "their workers have begun", func() (string, bool) {
			count, _ := g.Host.Run("pgrep", "-c", "lockfs-worker")
			return count, strings.TrimSpace(count) == fmt.Sprint(len(started))
		})
		for _, p := range started {
			p.Signal(syscall.SIGTERM)
		}
		began := time.Now()
		for _, p := range started {
			select {
			case <-p.Ended():
			case <-time.After(time.Until(began.Add(14 * time.Second))): // a cut mount answers after 15 s
				require.Fail(t, "it has not ended", "%s: %s", how, p)
			}
		}
		hang.end()
		for _, p := range started {
			require.Error(t, p.Wait(), p)
		}
		hosts.Eventually(t, "nothing is left", func() (string, bool) {
			_, err := g.Host.Run("pgrep", "lockfs-worker")
			left := node.MustRun(t, "find", c.Path("locks"), c.Path("beads"), c.Path("slots"), "-type", "f", "!", "-name", ".queue")
			return left, err != nil && left == ""
		})
	}
}

// TestWaitsEndInTimeOnAMountThatHangs without a signal, and no lock stays that is acquired later.
func TestWaitsEndInTimeOnAMountThatHangs(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	node := c.Nodes[0].Host
	g := c.AddGuest(t, "guest")
	g.Start(t)
	node.MustRun(t, "mkdir", c.Path("locks"), c.Path("beads"), c.Path("slots"))
	g.Daemon.Freeze()
	defer g.Daemon.Thaw()
	var started []*hosts.Process
	for _, call := range []string{
		"run L/run --wait 1s -- true", "run --slots 2 L/../slots --wait 1s -- true", "run --once-per 1h L/turn --wait 1s -- true",
		"semaphore run L/s --timeout 1s -- true", "semaphore acquire L/semaphore --pid 1 --timeout 1s",
		"beads run L/../beads --holder h --wait 1s -- true", "tower acquire tower --request-id r --intent i --intent-version 1 --wait 1s",
		"tower run tower --intent i --intent-version 1 --wait 1s -- true", "wait L/wait --timeout 1s",
	} {
		command := append([]string{"TOWER_LOCK_DIR=" + c.Path("locks"), c.Program},
			strings.Fields(strings.ReplaceAll(call, "L/", c.Path("locks")+"/"))...)
		started = append(started, g.Host.Start("env", command...))
	}
	for _, p := range started {
		<-p.Ended()
		require.ErrorContains(t, p.Wait(), "exit status 76", "%s", p)
		require.Regexp(t, "the wait of 1s is over, and the file system does not respond|has not answered for 1s", p.Log())
	}
	g.Daemon.Thaw()
	hosts.Eventually(t, "nothing is left", func() (string, bool) {
		_, err := g.Host.Run("pgrep", "lockfs-worker")
		left := node.MustRun(t, "find", c.Path("locks"), c.Path("beads"), c.Path("slots"), "-type", "f", "!", "-name", ".queue")
		return left, err != nil && left == ""
	})
}

// TestRunKeepsItsLock holds a lock for longer than its stale timeout, while the mount's daemon is killed and started
// again: what cannot be read for a while is not lost.
func TestRunKeepsItsLock(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "guest")
	g.Start(t)
	other := c.Nodes[0].Host
	c.Nodes[0].SetRule(t, "kept", "--stale-after", "15s")
	run, dir := startRun(t, c, g.Host, "kept", "--stale-timeout", "1h")
	hosts.Eventually(t, "it says that the mount's rule counts", func() (string, bool) {
		return run.Log(), strings.Contains(run.Log(), "--stale-timeout 1h has no effect here") && strings.Contains(run.Log(), "is stale after 15s")
	})
	token, taken := c.Token(t, other, "kept"), c.Xattr(t, other, "kept", "acquired")
	awaitRenewal := func() {
		t.Helper()
		before := c.Xattr(t, other, "kept", "renewed")
		hosts.Eventually(t, "it is renewed", func() (string, bool) {
			renewed := c.Xattr(t, other, "kept", "renewed")
			return renewed, renewed != before
		})
	}
	awaitRenewal()
	g.Kill()
	hosts.Eventually(t, "it is noticed", func() (string, bool) {
		return run.Log(), strings.Contains(run.Log(), "the lock can be neither read nor renewed")
	})
	g.Start(t)
	awaitRenewal()
	require.Equal(t, token, c.Token(t, other, "kept"))
	require.Equal(t, taken, c.Xattr(t, other, "kept", "acquired"))
	c.RequireHeld(t, "kept", other)
	other.MustRun(t, "touch", filepath.Join(dir, "end"))
	require.NoError(t, run.Wait(), run.Log())
	c.AwaitGone(t, "kept", other)
}
