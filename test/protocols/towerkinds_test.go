package protocols

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestTowersOfAllKinds has the specification's function library, a Python program and the commands contend for one
// lock, on three hosts each.
func TestTowersOfAllKinds(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	compete(t, c, map[string][]string{
		"library": {"bash", testcluster.ClientPath(t, "tower-library.sh")},
		"python":  {"python3", "-B", testcluster.ClientPath(t, "tower.py")},
		"command": {"env", "LOCKFS=" + c.Program, "bash", testcluster.ClientPath(t, "tower-command.sh")},
		"run":     {"env", "LOCKFS=" + c.Program, "bash", testcluster.ClientPath(t, "tower-run.sh")},
	}, 2)
}

// TestTowerHeartbeatsKeepTheLock has others try to steal a lock on two hosts, for longer than it would live without
// heartbeats. When the holder is killed, they can.
func TestTowerHeartbeatsKeepTheLock(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	a, b, other := c.Nodes[0].Host, c.Nodes[1].Host, c.Nodes[2].Host
	const ttl = 15 * time.Second
	run, _ := startRun(t, c, a, "app.lock", "--format", "tower", "--ttl", ttl.String())
	library := startTower(t, c, b)
	force := []string{"tower", "acquire", "app", "--dir", c.Mount, "--request-id", "other", "--intent", "i",
		"--intent-version", "1", "--force-lock"}
	token, taken := c.Token(t, b, "app.lock"), timeOf(t, c, b, "acquired")
	hosts.Eventually(t, "it has lived for longer than its ttl", func() (string, bool) {
		library.Fails("acquire_lock app theirs 900 true", "held by active process")
		_, err := other.Run(c.Program, force...)
		require.ErrorContains(t, err, "exit status 75")
		renewed := timeOf(t, c, b, "renewed")
		return renewed.String(), renewed.Sub(taken) > ttl
	})
	require.Equal(t, token, c.Token(t, other, "app.lock"))

	run.Kill()
	hosts.Eventually(t, "it is stolen", func() (string, bool) {
		said, err := other.Run(c.Program, force...)
		return said, err == nil
	})
	require.Greater(t, c.Token(t, b, "app.lock"), token)
}

// timeOf is a time that lockfs knows of app.lock.
func timeOf(t testing.TB, c *testcluster.Cluster, h *hosts.Host, name string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, c.Xattr(t, h, "app.lock", name))
	require.NoError(t, err)
	return at
}
