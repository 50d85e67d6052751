package cluster

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/consensus/wal"
	"lockfs/raftstore/storepb"
)

// TestLogBehindASnapshotIsBegunAnew has a node end when it had installed a snapshot of the leader's, and before it had dropped
// the log before it.
func TestLogBehindASnapshotIsBegunAnew(t *testing.T) {
	cfg := usedDataDir(t)
	found, err := Inspect(cfg.DataDir)
	require.NoError(t, err)
	require.Less(t, found.First, found.Snapshot.Index)
	log, err := wal.Open(filepath.Join(cfg.DataDir, logDir), true, raftLogger(cfg.Logger, 0))
	require.NoError(t, err)
	require.NoError(t, log.DeleteRange(found.Snapshot.Index-1, found.Last))
	require.NoError(t, log.Close())
	node := startNode(t, cfg)
	client := openTestClient(t, node, "")
	require.Equal(t, storepb.Code_OK, create(t, client, "new"))
	require.Equal(t, storepb.Code_EXISTS, create(t, client, "lock1"))
}
