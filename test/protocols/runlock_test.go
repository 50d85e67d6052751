package protocols

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// untilTold runs until a file on the local disk says that it may end, and tells in another that it was told to.
const untilTold = `trap 'echo told > "$1/told"; exit 3' TERM
echo "ready pid=$$"
until [ -e "$1/end" ]; do sleep 0.02; done`

// startRun starts `lockfs run` of untilTold, with the directory where that is told, and waits until it runs.
func startRun(t testing.TB, c *suite.Cluster, h *hosts.Host, lock string, flags ...string) (run *hosts.Process, dir string) {
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

// TestRunKilled kills `lockfs run` where the lock ends with it, and where that stays until it is stale. (That of tower
// stays until it is stolen: see TestTowerHeartbeatsKeepTheLock.)
func TestRunKilled(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	c.Nodes[0].SetRule(t, "semaphore", "--stale-after", "12s")
	a.MustRun(t, "mkdir", c.Path(".beads"))

	for lock, format := range map[string]string{"pid": "pid", ".beads/.exclusive-lock": "beads"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			run, _ := startRun(t, c, a, lock, "--format", format)
			_, command, _ := strings.Cut(strings.TrimSpace(run.Stdout()), "pid=")
			a.MustRun(t, "kill", "-0", command)
			next := b.Start(c.Program, "run", "--format", format, c.Path(lock), "--", "echo", "mine")
			run.Kill()
			require.NoError(t, next.Wait(), next.Log())
			require.Equal(t, "mine\n", next.Stdout())
			awaitEnd(t, a, command)
		})
	}
	for lock, flags := range map[string][]string{"semaphore": nil, "swarm.lock": {"--format", "swarm", "--ttl", "15s"}} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			run, dir := startRun(t, c, a, lock, flags...)
			run.Kill()
			awaitFile(t, filepath.Join(dir, "told"))
			_, err := b.Run(c.Program, append(append([]string{"run"}, flags...), c.Path(lock), "--nonblock", "--", "true")...)
			require.ErrorContains(t, err, "exit status 75", "it stays until it is stale")
			token := c.Token(t, b, lock)
			next, dir := startRun(t, c, b, lock, flags...)
			require.Greater(t, c.Token(t, b, lock), token)
			b.MustRun(t, "touch", filepath.Join(dir, "end"))
			require.NoError(t, next.Wait(), next.Log())
		})
	}
}

// TestRunLosesItsLock takes the locks of running commands away by force, from another host.
func TestRunLosesItsLock(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 2)
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
	c := suite.StartCluster(t, 2)
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
	c := suite.StartCluster(t, 1)
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

// TestRunIsGivenUp: whose command has ended can be ended though its lock cannot be released.
func TestRunIsGivenUp(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 1)
	g := c.AddGuest(t, "guest")
	g.Start(t)
	run, dir := startRun(t, c, g.Host, "hung")
	_, command, _ := strings.Cut(strings.TrimSpace(run.Stdout()), "pid=")
	g.Daemon.Freeze()
	defer g.Daemon.Thaw()
	g.Host.MustRun(t, "touch", filepath.Join(dir, "end"))
	awaitEnd(t, g.Host, command)
	run.Signal(syscall.SIGTERM)
	require.NoError(t, run.WaitOutput("the lock is not released"))
	g.Daemon.Thaw() // the kernel does not let go of a process whose question has been read
	require.ErrorContains(t, run.Wait(), "exit status 143")
}

// TestRunKeepsItsLock holds a lock for longer than its stale timeout, while the mount's daemon is killed and started
// again: what cannot be read for a while is not lost.
func TestRunKeepsItsLock(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 1)
	g := c.AddGuest(t, "guest")
	g.Start(t)
	other := c.Nodes[0].Host
	c.Nodes[0].SetRule(t, "kept", "--stale-after", "15s")
	run, dir := startRun(t, c, g.Host, "kept", "--stale-timeout", "1h")
	hosts.Eventually(t, "it says that the mount's rule counts", func() (string, bool) {
		return run.Log(), strings.Contains(run.Log(), "--stale-timeout 1h0m0s does not count here") && strings.Contains(run.Log(), "is stale after 15s")
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
		return run.Log(), strings.Contains(run.Log(), "cannot tell whether the lock is still there")
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
