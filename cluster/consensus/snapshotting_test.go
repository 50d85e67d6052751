package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// directorySize is the sum of the sizes of all files in a directory, some of which may go meanwhile.
func directorySize(t *testing.T, dir string) (size int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				size += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
	return size
}

func TestDataDirectoryStaysBounded(t *testing.T) {
	cfg := newSetup(t)
	cfg.SnapshotEntries = 100
	v := cfg.start(t)
	load := func() {
		for range 250 {
			v.mustCreate(t, "lock")
			removed := v.do(t, &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: namespace.RootIno, Name: []byte("lock")}}})
			require.Equal(t, storepb.Code_OK, removed.GetCode())
		}
	}
	snapshots := func() int {
		metas, err := v.files.snapshots.List()
		require.NoError(t, err)
		return len(metas)
	}
	load()
	require.Eventually(t, func() bool { return snapshots() > 0 }, testWait, 50*time.Millisecond, "one is taken by itself")

	// From here on they are taken at set times, to compare like with like.
	var sizes []int64
	for range 6 {
		load()
		v.snapshot(t)
		sizes = append(sizes, directorySize(t, cfg.path))
	}
	require.Less(t, sizes[5], sizes[2]*3/2, "sizes: %v", sizes)
	first, err := v.files.log.FirstIndex()
	require.NoError(t, err)
	require.Greater(t, first, v.LastIndex()-1000, "the log has been cut")
	require.Equal(t, keptSnapshots, snapshots())
}

func TestSnapshotsOfManyLocksAreSeldom(t *testing.T) {
	cfg := newSetup(t)
	cfg.SnapshotEntries = 10
	v := cfg.start(t)
	require.EqualValues(t, 10, v.snapshotEntries())
	const locks = 30 * inodesPerEntry
	for i := range locks {
		v.mustCreate(t, fmt.Sprint(i))
	}
	require.EqualValues(t, 40, v.snapshotEntries())
	require.EqualValues(t, 40, v.trailingEntries())
}

// TestLargeContentsStayBounded writes much more than may be left of it, a file at a time: on disk there
// are the state, the log since the last snapshot and what is left behind that; in memory, the state and
// the newest entries.
func TestLargeContentsStayBounded(t *testing.T) {
	const snapshotBytes = 4 << 20
	cfg := newSetup(t)
	cfg.snapshotBytes = snapshotBytes
	v := cfg.start(t)
	write := func(ino, version uint64) uint64 {
		result := v.do(t, &storepb.Op{Op: &storepb.Op_SetContent{SetContent: &storepb.SetContent{
			Ino: ino, IfVersion: version, Content: make([]byte, namespace.MaxContent),
		}}})
		require.Equal(t, storepb.Code_OK, result.GetCode())
		return result.GetAttr().GetVersion()
	}
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	result := v.mustCreate(t, "f")
	ino, version := result.GetAttr().GetIno(), result.GetAttr().GetVersion()
	before := heap()
	for range 20 {
		for range snapshotBytes / namespace.MaxContent { // as much as between two snapshots
			version = write(ino, version)
		}
	}
	require.Less(t, heap(), before+cachedEntries*(namespace.MaxContent+1<<10)+8<<20)
	// Behind a snapshot that was under way when the last entries came, another one follows.
	require.Eventually(t, func() bool {
		return v.files.sizes.between(v.files.snapshots.last().index, math.MaxUint64-1) < snapshotBytes*5/4
	}, testWait, 50*time.Millisecond)
	const segment = 4 << 20 // of the log, which goes as a whole
	most := int64(snapshotBytes*5/4 + snapshotBytes + 2*segment + (keptSnapshots+1)*(namespace.MaxContent+64<<10))
	require.Eventually(t, func() bool { return directorySize(t, cfg.path) <= most }, testWait, 50*time.Millisecond,
		"%d bytes, %d at most", directorySize(t, cfg.path), most)
}
