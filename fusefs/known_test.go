package fusefs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestKernelForgets has the kernel get to know inodes in every way that there is, and forget all of them.
func TestKernelForgets(t *testing.T) {
	dir := t.TempDir()
	m := mountAt(t, dir, newCluster().open(), Options{})
	path := func(name string) string { return filepath.Join(dir, name) }
	known := func() int {
		m.known.mu.Lock()
		defer m.known.mu.Unlock()
		return len(m.known.lookups)
	}
	writeFile(t, dir, "file", "")
	require.NoError(t, os.Mkdir(path("dir"), 0o755))
	require.NoError(t, os.Symlink("file", path("symlink")))
	require.NoError(t, os.Link(path("file"), path("link")))
	require.NoError(t, unix.Mkfifo(path("fifo"), 0o600))
	for range 3 {
		for _, name := range []string{"file", "dir", "symlink", "link", "fifo"} {
			require.True(t, m.known.knows(lstat(t, path(name)).Ino), name)
		}
	}
	require.Equal(t, 4, known())
	held := openFile(t, path("file"), os.O_RDWR)
	ino := lstat(t, path("file")).Ino
	for _, name := range []string{"file", "dir", "symlink", "link", "fifo"} {
		require.NoError(t, os.Remove(path(name)))
	}
	eventually(t, "it forgets all but what is open", func() bool { return known() == 1 })
	require.True(t, m.known.knows(ino))
	require.NoError(t, held.Close())
	eventually(t, "it forgets that too", func() bool { return known() == 0 })
}

func TestWatchesAreLookedForOnlyIfTheKernelKnowsWhatWasRemoved(t *testing.T) {
	known := newKnown()
	looks, told := 0, []uint64{}
	r := newRemovals(known.knows, 0, func(_, ino uint64, _ string) { told = append(told, ino) })
	r.watched = func() map[uint64]bool {
		looks++
		return map[uint64]bool{7: true, 9: true}
	}
	r.add(1, "other", 8)
	require.Zero(t, r.tell(removal{1, 7, "watched"}), "nothing to wait for")
	require.Zero(t, looks)

	known.told(7)
	known.told(7)
	known.told(8)
	known.forgot(7, 1)
	r.add(1, "other", 8)
	r.add(1, "unknown", 9)
	require.GreaterOrEqual(t, r.tell(removal{1, 7, "watched"}), watchedLook)
	require.Equal(t, 1, looks)
	require.Equal(t, []uint64{7}, told)

	known.forgot(7, 1)
	known.forgot(8, 1)
	require.Zero(t, r.tell(removal{1, 7, "watched"}))
	require.Equal(t, 1, looks)
}

func TestALookThatTakesLongIsFollowedByALongPause(t *testing.T) {
	const took = 60 * time.Millisecond
	r := newRemovals(func(uint64) bool { return true }, 0, func(_, _ uint64, _ string) {})
	r.watched = func() map[uint64]bool {
		time.Sleep(took)
		return nil
	}
	require.GreaterOrEqual(t, r.tell(removal{1, 7, "removed"}), watchedShare*took)
}
