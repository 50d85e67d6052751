package operation

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestNumbersRiseThroughEveryRestoreOnMounts restores backups of one history out of order, as an administrator does who first takes the wrong
// one. Token and inode of a lock that is taken after each restore, and the number of the last event, rise.
func TestNumbersRiseThroughEveryRestoreOnMounts(t *testing.T) {
	t.Parallel()
	c := testcluster.StartInsecureCluster(t, 1)
	n := c.Nodes[0]
	dir := n.Data
	backups := map[string]string{}
	backup := func(name string) {
		backups[name] = filepath.Join(c.Net.Dir(), name+".backup")
		_, err := n.Lockfs("backup", backups[name])
		require.NoError(t, err)
	}
	restores := 0
	restore := func(name string) {
		n.Stop(t)
		restores++
		n.Data = fmt.Sprint(dir, ".", restores)
		n.Host.MustRun(t, c.Program, "restore", backups[name], "--data", n.Data, "--name", n.Name, "--addr", n.Addr(), "--insecure")
		n.Start(t)
	}
	type numbers struct{ Token, Inode, Event uint64 }
	take := func() (taken numbers) {
		lock := c.Path("job.lock")
		n.Host.MustRun(t, "sh", "-c", "set -C; > "+lock)
		taken.Token = tokenOf(t, n.Host, lock)
		_, err := fmt.Sscan(n.Host.MustRun(t, "stat", "-c", "%i", lock), &taken.Inode)
		require.NoError(t, err)
		for _, e := range n.Events(t) {
			taken.Event = max(taken.Event, e.Number)
		}
		return taken
	}

	backup("b0")
	restore("b0")
	backup("b1")
	for i := range 9 {
		n.Host.MustRun(t, "sh", "-c", "echo x > "+c.Path(fmt.Sprint("written", i)))
	}
	backup("b2")
	last := numbers{}
	for _, name := range []string{"b2", "b2", "b1", "b0", "b2"} {
		restore(name)
		now := take()
		require.Greater(t, now.Token, last.Token, "token after restore of %s", name)
		require.Greater(t, now.Inode, last.Inode, "inode after restore of %s", name)
		require.Greater(t, now.Event, last.Event, "event after restore of %s", name)
		last = now
	}
	require.Less(t, max(last.Token, last.Inode, last.Event), uint64(1)<<53, "every JSON reader is exact")
}
