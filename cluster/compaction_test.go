package cluster

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

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
	// loadUntil works until as many snapshots have been taken.
	loadUntil := func(snapshots int) {
		var last uint64
		for snapshots > 0 {
			mutate(t, client, createOp("lock"))
			mutate(t, client, &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{
				Parent: raftstore.RootIno, Name: []byte("lock"),
			}}})
			metas, err := node.storage.snapshots.List()
			require.NoError(t, err)
			if len(metas) > 0 && metas[0].Index > last {
				last = metas[0].Index
				snapshots--
			}
		}
	}
	loadUntil(1)
	early := directorySize(t, cfg.DataDir)
	loadUntil(3)
	require.Less(t, directorySize(t, cfg.DataDir), 3*early)
	first, err := node.storage.bolt.FirstIndex()
	require.NoError(t, err)
	require.Greater(t, first, cfg.SnapshotEntries, "the log has been cut")
	metas, err := node.storage.snapshots.List()
	require.NoError(t, err)
	require.Len(t, metas, keptSnapshots)
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
	require.NoError(t, node.raft.Snapshot().Error())
	mutate(t, client, createOp("after"))
	other := startNode(t, testConfig(t, "b", cfg.APIAddress))
	mine := node.fsm.State()
	require.NoError(t, other.fsm.WaitIndex(t.Context(), mine.Index()))
	theirs := other.fsm.State()
	require.Equal(t, mine.Index(), theirs.Index())
	require.Equal(t, mine.Hash(), theirs.Hash())
	require.Equal(t, uint32(syscall.S_IFREG|0o644), other.fsm.Query(&storepb.Query{Query: &storepb.Query_Lookup{
		Lookup: &storepb.Lookup{Parent: raftstore.RootIno, Name: []byte("after")},
	}}).GetAttr().GetMode())
}
