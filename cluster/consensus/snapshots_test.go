package consensus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// countingSink is where a snapshot goes that nobody keeps.
type countingSink struct {
	raft.SnapshotSink
	written int
}

func (s *countingSink) Write(b []byte) (int, error) {
	s.written += len(b)
	return len(b), nil
}

// TestSnapshotsReachTheDiskInPieces keeps a write of the log from having to wait for a whole snapshot.
func TestSnapshotsReachTheDiskInPieces(t *testing.T) {
	to := new(countingSink)
	synced, syncs := 0, 0
	failure := error(nil)
	sink := &snapshotSink{SnapshotSink: to, sync: func() error {
		require.LessOrEqual(t, to.written-synced, snapshotPiece+1000)
		synced, syncs = to.written, syncs+1
		return failure
	}}
	for to.written < 5*snapshotPiece {
		_, err := sink.Write(make([]byte, 1000))
		require.NoError(t, err)
	}
	require.Equal(t, 4, syncs)
	failure = errors.New("the disk is full")
	var err error
	for err == nil {
		_, err = sink.Write(make([]byte, 1000))
	}
	require.ErrorIs(t, err, failure)
	require.Equal(t, 5, syncs)

	cfg := newSetup(t)
	var store raft.SnapshotStore = cfg.start(t).files.snapshots
	_, trans := raft.NewInmemTransport("")
	stored, err := store.Create(1, 1000, 1, raft.Configuration{}, 1, trans)
	require.NoError(t, err)
	require.NoError(t, stored.(*snapshotSink).sync())
	require.NoError(t, stored.Cancel())
	left, err := filepath.Glob(filepath.Join(cfg.path, snapshotDir, "*"+unfinished))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestUnfinishedSnapshotsAreRemoved has a process end, again and again, while it takes a snapshot.
func TestUnfinishedSnapshotsAreRemoved(t *testing.T) {
	cfg := usedDirectory(t)
	odd := filepath.Join(t.TempDir(), "[odd]*")
	require.NoError(t, os.Rename(cfg.path, odd))
	cfg.path = odd
	before, err := os.ReadDir(filepath.Join(cfg.path, snapshotDir))
	require.NoError(t, err)
	for i := range 3 {
		left := filepath.Join(cfg.path, snapshotDir, fmt.Sprintf("2-%d-1789%s", 1000+i, unfinished))
		require.NoError(t, os.Mkdir(left, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(left, stateFile), []byte("half"), 0o600))
	}
	v := cfg.start(t)
	require.Equal(t, storepb.Code_EXISTS, v.create(t, "last").GetCode())
	after, err := os.ReadDir(filepath.Join(cfg.path, snapshotDir))
	require.NoError(t, err)
	require.Len(t, after, len(before))
}
