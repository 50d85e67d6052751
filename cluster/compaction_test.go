package cluster

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore"
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
				Parent: raftstore.RootIno, Name: []byte("lock"),
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
	require.NoError(t, other.fsm.WaitFor(t.Context(), func(ns *raftstore.Namespace) bool { return ns.Index() >= mine.Index() }))
	theirs := other.fsm.State()
	require.Equal(t, mine.Index(), theirs.Index())
	require.Equal(t, mine.Hash(), theirs.Hash())
	after, err := other.fsm.Query(&storepb.Query{Query: &storepb.Query_Lookup{
		Lookup: &storepb.Lookup{Parent: raftstore.RootIno, Name: []byte("after")},
	}})
	require.NoError(t, err)
	require.Equal(t, uint32(syscall.S_IFREG|0o644), after.GetAttr().GetMode())
}

func TestSnapshotsOfManyLocksAreSeldom(t *testing.T) {
	cfg := testConfig(t, "a")
	cfg.SnapshotEntries = 10
	node := startNode(t, cfg)
	client := openTestClient(t, node, "")
	entries := func() [2]uint64 {
		node.tuneSnapshots()
		config := node.raft.ReloadableConfig()
		return [2]uint64{config.SnapshotThreshold, config.TrailingLogs}
	}
	require.Equal(t, [2]uint64{10, 10}, entries())
	const locks = 30 * inodesPerEntry
	for i := range locks {
		mutate(t, client, createOp(fmt.Sprint(i)))
	}
	require.Equal(t, [2]uint64{40, 40}, entries())
}
