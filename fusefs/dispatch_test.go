package fusefs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/ids"
)

// TestKernelForgets has the kernel get to know inodes in every way that there is, and forget all of them.
func TestKernelForgets(t *testing.T) {
	dir := t.TempDir()
	m := mountAt(t, dir, newCluster().open(), Options{})
	path := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, dir, "file", "")
	require.NoError(t, os.Mkdir(path("dir"), 0o755))
	require.NoError(t, os.Symlink("file", path("symlink")))
	require.NoError(t, os.Link(path("file"), path("link")))
	require.NoError(t, unix.Mkfifo(path("fifo"), 0o600))
	for range 3 {
		for _, name := range []string{"file", "dir", "symlink", "link", "fifo"} {
			require.True(t, m.fs.known.Knows(ids.Inode(lstat(t, path(name)).Ino)), name)
		}
	}
	require.Equal(t, 4, m.fs.known.Len())
	shell(t, dir, "cat .lockfs/kv/dir .lockfs/why/dir; stat .lockfs/force/file")
	require.Equal(t, 4+7, m.fs.known.Len(), "in the control directory too: itself, kv, why, force, and one in each")
	held := openFile(t, path("file"), os.O_RDWR)
	ino := lstat(t, path("file")).Ino
	for _, name := range []string{"file", "dir", "symlink", "link", "fifo"} {
		require.NoError(t, os.Remove(path(name)))
	}
	shell(t, dir, "! stat .lockfs/kv/dir .lockfs/why/dir .lockfs/force/file 2>&1")
	const directories = 4 // .lockfs and three in it
	eventually(t, "it forgets all but what is open", func() bool { return m.fs.known.Len() == directories+1 })
	require.True(t, m.fs.known.Knows(ids.Inode(ino)))
	require.NoError(t, held.Close())
	eventually(t, "it forgets that too", func() bool { return m.fs.known.Len() == directories })
}
