package consensus

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/consensus/wal"
	"lockfs/raftstore/storepb"
)

// TestLogBehindASnapshotIsBegunAnew has a node end when it had installed a snapshot of the leader's, and
// before it had dropped the log before it.
func TestLogBehindASnapshotIsBegunAnew(t *testing.T) {
	cfg := usedDirectory(t)
	found, err := Inspect(cfg.path)
	require.NoError(t, err)
	require.Less(t, found.First, found.Snapshot.Index)
	log, err := wal.Open(filepath.Join(cfg.path, logDir), true, raftLogger(cfg.Logger, 0), wal.Once)
	require.NoError(t, err)
	require.NoError(t, log.DeleteRange(uint64(found.Snapshot.Index-1), uint64(found.Last)))
	require.NoError(t, log.Close())
	v := cfg.start(t)
	v.mustCreate(t, "new")
	require.Equal(t, storepb.Code_EXISTS, v.create(t, "lock1").GetCode())
}
