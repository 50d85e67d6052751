package testcluster

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
	for _, c := range Clients {
		w := NewWitness(t, filepath.Join(net.Dir(), c.Name+".witness"))
		j := StartJob(t, c, dir, w, 1, host, host)
		orphans := NewOrphans()
		hosts.Eventually(t, "the workers get the lock", func() (string, bool) {
			if orphans.Found == 0 { // this file system uses inode numbers again
				orphans.Remove(t, j, host)
			}
			return j.describe(host), w.Rounds(t, "") >= 2
		})
		w.Stop(t)
		j.Wait(t)
		require.Equal(t, 1, orphans.Found, c.Name)
		require.Empty(t, w.Verdict(t), c.Name)
		require.NoError(t, os.Mkdir(filepath.Join(dir, "lock"), 0o755))
	}
}
