package consensus

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/cluster/consensus/fulldisk"
	"lockfs/raftstore/storepb"
)

// TestANodeWhoseDiskIsFullGoesOnWhenThereIsSpace answers nothing that is not on disk meanwhile, says
// nothing as a leader, and does not end.
func TestANodeWhoseDiskIsFullGoesOnWhenThereIsSpace(t *testing.T) {
	cfg := newSetup(t)
	full := new(atomic.Bool)
	cfg.Entries = func(log raft.LogStore) raft.LogStore { return fulldisk.Log{LogStore: log, Full: full} }
	v := cfg.start(t)
	full.Store(true)
	done := make(chan *storepb.Result, 1)
	go func() { done <- v.create(t, "a") }()
	require.Eventually(t, v.files.space.isFull, testWait, time.Millisecond)
	require.ErrorIs(t, v.Transport.(transport).maySend(), errFull)
	for range 2 * diskTicks {
		require.False(t, v.files.disk.tick(true), "it waits for space, not for the disk")
	}
	require.Empty(t, done)
	require.Empty(t, v.failed)
	full.Store(false)
	require.Equal(t, storepb.Code_OK, (<-done).GetCode())
	require.False(t, v.files.space.isFull())
	require.NoError(t, v.Transport.(transport).maySend())
	require.Empty(t, v.failed)
}

// TestANewVersionWaitsForSpace has the disk be full when the cluster is raised.
func TestANewVersionWaitsForSpace(t *testing.T) {
	v := newSetup(t).start(t)
	full := new(atomic.Bool)
	full.Store(true)
	noted := make(chan error, 1)
	go func() {
		noted <- v.recordVersion(func(uint32) error {
			if full.Load() {
				return &os.PathError{Op: "write", Path: IdentityFile, Err: unix.EDQUOT}
			}
			return nil
		})(2)
	}()
	require.Eventually(t, v.IsFull, testWait, time.Millisecond)
	full.Store(false)
	require.NoError(t, <-noted)
	require.Empty(t, v.failed)
	require.False(t, v.IsFull())
}

func TestANodeWhoseDiskIsFullCanBeClosed(t *testing.T) {
	cfg := newSetup(t)
	full := new(atomic.Bool)
	cfg.Entries = func(log raft.LogStore) raft.LogStore { return fulldisk.Log{LogStore: log, Full: full} }
	v := cfg.start(t)
	v.mustCreate(t, "acknowledged")
	full.Store(true)
	v.Apply([]byte("never written"), 0)
	require.Eventually(t, v.files.space.isFull, testWait, time.Millisecond)
	go func() { _ = v.files.votes.SetUint64([]byte(keyCurrentTerm), v.CurrentTerm()+1) }()
	closed := make(chan error, 1)
	go func() { closed <- v.close() }()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(testWait):
		t.Fatal("it does not end")
	}
	require.Empty(t, v.failed)
	cfg.Entries, cfg.Network = nil, listen(t)
	again := cfg.start(t)
	require.Equal(t, storepb.Code_EXISTS, again.create(t, "acknowledged").GetCode())
}

// TestTheReserveIsGivenUpAndFilledAgain has a write fail until the reserve is gone.
func TestTheReserveIsGivenUpAndFilledAgain(t *testing.T) {
	dir := t.TempDir()
	s := newDiskReserve(dir, 1<<20, quietLogger())
	s.refill()
	info, err := os.Stat(s.reserve())
	require.NoError(t, err)
	require.EqualValues(t, 512<<10, info.Size())
	before, err := s.free()
	require.NoError(t, err)
	require.Positive(t, before)

	write := func() error {
		if s.hasReserve() {
			return unix.ENOSPC
		}
		return nil
	}
	require.NoError(t, s.retryWhenFull(write))
	require.NoFileExists(t, s.reserve())
	require.NotEmpty(t, s.released, "a snapshot is taken")
	require.NoError(t, s.retryWhenFull(write))
	require.ErrorIs(t, s.retryWhenFull(func() error { return unix.ENOSPC }), unix.ENOSPC, "nobody waits before raft runs")
	s.refill()
	require.FileExists(t, s.reserve())

	s.minFree = 1 << 60
	s.refill()
	require.True(t, s.short.Load())
}
