package cluster

import (
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// directorySize is the sum of the sizes of all files in a directory.
func directorySize(t *testing.T, dir string) (size int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	}))
	return size
}

func TestDataDirectoryStaysBounded(t *testing.T) {
	cfg := testConfig(t, "a")
	cfg.SnapshotEntries = 100
	node := startNode(t, cfg)
	client := openTestClient(t, node, "")
	load := func() {
		for range 250 {
			mutate(t, client, createOp("lock"))
			mutate(t, client, &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{
				Parent: namespace.RootIno, Name: []byte("lock"),
			}}})
		}
	}
	snapshots := func() int {
		metas, err := node.storage.snapshots.List()
		require.NoError(t, err)
		return len(metas)
	}
	load()
	require.Eventually(t, func() bool { return snapshots() > 0 }, testWait, 50*time.Millisecond, "one is taken by itself")

	// From here on they are taken at set times, to compare like with like.
	var sizes []int64
	for range 6 {
		load()
		takeSnapshot(t, node)
		sizes = append(sizes, directorySize(t, cfg.DataDir))
	}
	require.Less(t, sizes[5], sizes[2]*3/2, "sizes: %v", sizes)
	first, err := node.storage.log.FirstIndex()
	require.NoError(t, err)
	require.Greater(t, first, node.raft.LastIndex()-1000, "the log has been cut")
	require.Equal(t, keptSnapshots, snapshots())
}

func mutate(t testing.TB, client *Client, op *storepb.Op) {
	t.Helper()
	result, err := client.Mutate(t.Context(), &storepb.Caller{}, op)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
}

// TestFollowerCatchesUpBySnapshot joins a node when the log has long been cut.
func TestFollowerCatchesUpBySnapshot(t *testing.T) {
	cfg := testConfig(t, "a")
	cfg.SnapshotEntries = 20
	node := startNode(t, cfg)
	client := openTestClient(t, node, "")
	for i := range 100 {
		mutate(t, client, createOp(string(rune('a'+i%26))+string(rune('a'+i/26))))
	}
	takeSnapshot(t, node)
	mutate(t, client, createOp("after"))
	other := startNode(t, testConfig(t, "b", cfg.APIAddress))
	mine := node.fsm.State()
	require.NoError(t, other.fsm.WaitFor(t.Context(), func(ns *namespace.Namespace) bool { return ns.Index() >= mine.Index() }))
	theirs := other.fsm.State()
	require.Equal(t, mine.Index(), theirs.Index())
	require.Equal(t, mine.Hash(), theirs.Hash())
	after, err := other.fsm.Query(&storepb.Query{Query: &storepb.Query_Lookup{
		Lookup: &storepb.Lookup{Parent: namespace.RootIno, Name: []byte("after")},
	}})
	require.NoError(t, err)
	require.Equal(t, uint32(syscall.S_IFREG|0o644), after.GetAttr().GetMode())
}

// TestFollowerCatchesUpByLargeEntries joins a node that has more to be sent than goes into one request.
func TestFollowerCatchesUpByLargeEntries(t *testing.T) {
	node := startNode(t, testConfig(t, "a"))
	client := openTestClient(t, node, "")
	for i := range 5 * maxBatch / namespace.MaxContent {
		op := createOp(fmt.Sprint(i))
		op.GetCreate().Content = make([]byte, namespace.MaxContent)
		mutate(t, client, op)
	}
	mine := node.fsm.State()
	other := startNode(t, testConfig(t, "b", node.cfg.APIAddress))
	require.NoError(t, other.fsm.WaitFor(t.Context(), func(ns *namespace.Namespace) bool { return ns.Index() >= mine.Index() }))
	require.Zero(t, other.storage.snapshots.newest.Load(), "nothing but the log was sent")
	require.Eventually(t, func() bool { return node.fsm.State().Hash() == other.fsm.State().Hash() }, testWait, 50*time.Millisecond)
}

func TestSnapshotsOfManyLocksAreSeldom(t *testing.T) {
	cfg := testConfig(t, "a")
	cfg.SnapshotEntries = 10
	node := startNode(t, cfg)
	client := openTestClient(t, node, "")
	require.EqualValues(t, 10, node.snapshotEntries())
	const locks = 30 * inodesPerEntry
	for i := range locks {
		mutate(t, client, createOp(fmt.Sprint(i)))
	}
	require.EqualValues(t, 40, node.snapshotEntries())
	require.EqualValues(t, 40, node.trailingEntries())
}

// TestLargeContentsStayBounded writes much more than may be left of it, a file at a time: on disk there are the state, the log
// since the last snapshot and what is left behind that; in memory, the state and the newest entries.
func TestLargeContentsStayBounded(t *testing.T) {
	const snapshotBytes = 4 << 20
	cfg := testConfig(t, "a")
	cfg.snapshotBytes = snapshotBytes
	node := startNode(t, cfg)
	client := openTestClient(t, node, "")
	write := func(ino, version uint64) uint64 {
		result, err := client.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_SetContent{SetContent: &storepb.SetContent{
			Ino: ino, IfVersion: version, Content: make([]byte, namespace.MaxContent),
		}}})
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode())
		return result.GetAttr().GetVersion()
	}
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	result, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp("f"))
	require.NoError(t, err)
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
		return node.storage.sizes.between(node.storage.snapshots.newest.Load(), math.MaxUint64-1) < snapshotBytes*5/4
	}, testWait, 50*time.Millisecond)
	const segment = 4 << 20 // of the log, which goes as a whole
	most := int64(snapshotBytes*5/4 + snapshotBytes + 2*segment + (keptSnapshots+1)*(namespace.MaxContent+64<<10))
	require.Eventually(t, func() bool { return directorySize(t, cfg.DataDir) <= most }, testWait, 50*time.Millisecond,
		"%d bytes, %d at most", directorySize(t, cfg.DataDir), most)
}
