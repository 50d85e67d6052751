package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// untilTold runs until a file on the local disk says that it may end, and tells in another that it was told to.
const untilTold = `trap 'echo told > "$1/told"; exit 3' TERM
echo "ready pid=$$"
until [ -e "$1/end" ]; do sleep 0.02; done`

// startRun starts `lockfs run` of untilTold, with the directory where that is told, and waits until it runs.
func (c *cluster) startRun(t testing.TB, h *hosts.Host, lock string, flags ...string) (run *hosts.Process, dir string) {
	t.Helper()
	dir = t.TempDir()
	args := append([]string{"run", c.path(lock)}, flags...)
	run = h.Start(c.program, append(args, "--", "bash", "-c", untilTold, "bash", dir)...)
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

// TestRunKilled kills `lockfs run` where the lock ends with it, and where that stays until it is stale. (That of tower
// stays until it is stolen: see TestTowerHeartbeatsKeepTheLock.)
func TestRunKilled(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0].host, c.nodes[1].host
	c.nodes[0].set(t, "semaphore", "--stale-after", "4s")
	a.MustRun(t, "mkdir", c.path(".beads"))

	for lock, format := range map[string]string{"pid": "pid", ".beads/.exclusive-lock": "beads"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			run, _ := c.startRun(t, a, lock, "--format", format)
			_, command, _ := strings.Cut(strings.TrimSpace(run.Stdout()), "pid=")
			a.MustRun(t, "kill", "-0", command)
			next := b.Start(c.program, "run", "--format", format, c.path(lock), "--", "echo", "mine")
			run.Kill()
			require.NoError(t, next.Wait(), next.Log())
			require.Equal(t, "mine\n", next.Stdout())
			hosts.Eventually(t, "the command ends with its lock", func() (string, bool) {
				_, err := a.Run("kill", "-0", command)
				return fmt.Sprint(err), err != nil
			})
		})
	}
	for lock, flags := range map[string][]string{"semaphore": nil, "swarm.lock": {"--format", "swarm", "--ttl", "8s"}} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			run, dir := c.startRun(t, a, lock, flags...)
			run.Kill()
			awaitFile(t, filepath.Join(dir, "told"))
			_, err := b.Run(c.program, append(append([]string{"run"}, flags...), c.path(lock), "--nonblock", "--", "true")...)
			require.ErrorContains(t, err, "exit status 75", "it stays until it is stale")
			token := c.token(t, b, lock)
			next, dir := c.startRun(t, b, lock, flags...)
			require.Greater(t, c.token(t, b, lock), token)
			b.MustRun(t, "touch", filepath.Join(dir, "end"))
			require.NoError(t, next.Wait(), next.Log())
		})
	}
}

// TestRunLosesItsLock takes the locks of running commands away by force, from another host.
func TestRunLosesItsLock(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0].host, c.nodes[1].host
	for _, format := range []string{"semaphore", "tower", "swarm", "pid"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			lock := format + ".lock"
			run, dir := c.startRun(t, a, lock, "--format", format)
			b.MustRun(t, c.program, "rm", "--force", c.path(lock))
			awaitFile(t, filepath.Join(dir, "told"))
			require.ErrorContains(t, run.Wait(), "exit status 124")
			require.Contains(t, run.Log(), "the lock was lost while the command ran")
		})
	}
}

// TestRunKeepsItsLock holds a lock for longer than its stale timeout, while the mount's daemon is killed and started
// again: what cannot be read for a while is not lost.
func TestRunKeepsItsLock(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	g := c.addGuest(t, "guest")
	g.start(t)
	other := c.nodes[0].host
	c.nodes[0].set(t, "kept", "--stale-after", "6s")
	run, dir := c.startRun(t, g.host, "kept", "--stale-timeout", "1h")
	hosts.Eventually(t, "it says that the mount's rule counts", func() (string, bool) {
		return run.Log(), strings.Contains(run.Log(), "--stale-timeout 1h0m0s does not count here") && strings.Contains(run.Log(), "is stale after 6s")
	})
	token, taken := c.token(t, other, "kept"), c.xattr(t, other, "kept", "acquired")
	awaitRenewal := func() {
		t.Helper()
		before := c.xattr(t, other, "kept", "renewed")
		hosts.Eventually(t, "it is renewed", func() (string, bool) {
			renewed := c.xattr(t, other, "kept", "renewed")
			return renewed, renewed != before
		})
	}
	awaitRenewal()
	g.kill()
	hosts.Eventually(t, "it is noticed", func() (string, bool) {
		return run.Log(), strings.Contains(run.Log(), "cannot tell whether the lock is still there")
	})
	g.start(t)
	awaitRenewal()
	require.Equal(t, token, c.token(t, other, "kept"))
	require.Equal(t, taken, c.xattr(t, other, "kept", "acquired"))
	c.requireHeld(t, "kept", other)
	other.MustRun(t, "touch", filepath.Join(dir, "end"))
	require.NoError(t, run.Wait(), run.Log())
	c.awaitGone(t, "kept", other)
}
