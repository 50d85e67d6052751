package test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// TestTowersOfAllKinds has the specification's function library, a Python program and the commands contend for one
// lock, on three hosts each.
func TestTowersOfAllKinds(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.contend(t, map[string][]string{
		"library": {"bash", ClientPath(t, "tower-library.sh")},
		"python":  {"python3", "-B", ClientPath(t, "tower.py")},
		"command": {"env", "LOCKFS=" + c.program, "bash", ClientPath(t, "tower-command.sh")},
		"run":     {"env", "LOCKFS=" + c.program, "bash", ClientPath(t, "tower-run.sh")},
	}, 2)
}

// TestTowerHeartbeatsKeepTheLock has others try to steal a lock on two hosts, for longer than it would live without
// heartbeats. When the holder is killed, they can.
func TestTowerHeartbeatsKeepTheLock(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	a, b, other := c.nodes[0].host, c.nodes[1].host, c.nodes[2].host
	const ttl = 5 * time.Second
	run, _ := c.startRun(t, a, "app.lock", "--format", "tower", "--ttl", ttl.String())
	library := c.startTower(t, b)
	force := []string{"tower", "acquire", "app", "--dir", c.mount, "--request-id", "other", "--intent", "i",
		"--intent-version", "1", "--force-lock"}
	token, taken := c.token(t, b, "app.lock"), c.timeOf(t, b, "acquired")
	hosts.Eventually(t, "it has lived for longer than its ttl", func() (string, bool) {
		library.fails("acquire_lock app theirs 900 true", "held by active process")
		_, err := other.Run(c.program, force...)
		require.ErrorContains(t, err, "exit status 75")
		renewed := c.timeOf(t, b, "renewed")
		return renewed.String(), renewed.Sub(taken) > ttl
	})
	require.Equal(t, token, c.token(t, other, "app.lock"))

	run.Kill()
	hosts.Eventually(t, "it is stolen", func() (string, bool) {
		said, err := other.Run(c.program, force...)
		return said, err == nil
	})
	require.Greater(t, c.token(t, b, "app.lock"), token)
}

// timeOf is a time that lockfs knows of app.lock.
func (c *cluster) timeOf(t testing.TB, h *hosts.Host, name string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, c.xattr(t, h, "app.lock", name))
	require.NoError(t, err)
	return at
}
