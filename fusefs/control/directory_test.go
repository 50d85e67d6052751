package control

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
)

func TestFilesTellOfALock(t *testing.T) {
	c := newCluster()
	d := directoryOf(c, nil)
	ino := c.create(t, "lock.d", syscall.S_IFDIR|0o755)
	require.Contains(t, d.read(t, "status"), "host=host\nsession=0000000000000001\nleader=leader\n")
	require.Regexp(t, `^held none \d+ - host - 0 lock\.d\n$`, d.read(t, "locks"))
	require.Contains(t, d.read(t, "why", "lock.d"), fmt.Sprintf("inode: %d\n", ino), "a directory without entries is a file")
	require.Contains(t, d.read(t, "kv", "lock.d"), "pid=1\n")
	require.Equal(t, "free\n", d.read(t, "wait", "nothing"))
}

func TestForceAsksTheTree(t *testing.T) {
	c, forced := newCluster(), new(tree)
	d := directoryOf(c, forced)
	ino := c.create(t, "lock", syscall.S_IFREG|0o644)
	force := fuse.InHeader{NodeId: d.at(t, "force"), Caller: fuse.Caller{Owner: fuse.Owner{Uid: 7}}}
	d.at(t, "force", "lock")
	require.Equal(t, ids.Inode(ino), forced.found)
	require.Equal(t, fuse.OK, d.Unlink(nil, &force, "lock"))
	require.Equal(t, fuse.OK, d.Rmdir(nil, &force, "lock.d"))
	require.Equal(t, []string{"lock in 1 for 7: false", "lock.d in 1 for 7: true"}, forced.removed)
	require.Equal(t, fuse.EPERM, d.Unlink(nil, &fuse.InHeader{NodeId: d.at(t, "why")}, "lock"))
	require.Len(t, forced.removed, 2)
}

// TestNodesAreForgotten as soon as the kernel says so, but for those that are always there.
func TestNodesAreForgotten(t *testing.T) {
	c := newCluster()
	d := directoryOf(c, new(tree))
	lasting := len(d.nodes.known)
	require.Equal(t, 1+len(rootEntries), lasting)
	c.create(t, "lock", syscall.S_IFREG|0o644)
	for _, view := range []string{"why", "kv", "wait", "force"} {
		id := d.at(t, view, "lock")
		require.Len(t, d.nodes.known, lasting+1)
		d.Forget(id, 1)
		d.Forget(d.at(t, view), 2)
		d.Forget(d.at(t), 3)
		require.Len(t, d.nodes.known, lasting)
		require.Len(t, d.nodes.numbers, lasting)
	}
}
