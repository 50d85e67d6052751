package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// TestOrphansAreFound has workers wait for a lock that nobody has.
func TestOrphansAreFound(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	host := net.Host("a")
	dir := filepath.Join(net.Dir(), "orphaned")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "lock"), 0o755))
	for _, c := range clients {
		w := newWitness(t, filepath.Join(net.Dir(), c.name+".witness"))
		j := startJob(t, c, dir, w, 1, host, host)
		orphans := newOrphans()
		hosts.Eventually(t, "the workers get the lock", func() (string, bool) {
			if orphans.found == 0 { // this file system uses inode numbers again
				orphans.remove(t, j, host)
			}
			return j.describe(host), w.rounds(t, "") >= 2
		})
		w.stop(t)
		j.wait(t)
		require.Equal(t, 1, orphans.found, c.name)
		require.Empty(t, w.verdict(t), c.name)
		require.NoError(t, os.Mkdir(filepath.Join(dir, "lock"), 0o755))
	}
}
