package raftstore

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/storepb"
)

// failingRaft answers every command with one error.
type failingRaft struct{ err error }

func (f failingRaft) Apply([]byte, time.Duration) raft.ApplyFuture { return failedFuture(f) }

type failedFuture struct{ err error }

func (f failedFuture) Error() error  { return f.err }
func (f failedFuture) Index() uint64 { return 0 }
func (f failedFuture) Response() any { return nil }

func TestProposeSortsRaftErrors(t *testing.T) {
	for _, row := range []struct{ raft, want error }{
		{raft.ErrNotLeader, ErrNotLeader},
		{raft.ErrEnqueueTimeout, ErrNotDone},
		{raft.ErrLeadershipTransferInProgress, ErrNotDone},
		{raft.ErrLeadershipLost, ErrUnknown},
		{raft.ErrRaftShutdown, ErrUnknown},
		{raft.ErrAbortedByRestore, ErrUnknown},
		{raft.ErrLeader, ErrUnknown},
		{errors.New("something that raft says one day"), ErrUnknown},
	} {
		store := &Store{Raft: failingRaft{row.raft}, Now: func() int64 { return 1 }, Version: ofFirst}
		_, err := store.Propose(t.Context(), &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
		require.ErrorIs(t, err, row.want, "raft says %q", row.raft)
		require.ErrorIs(t, err, row.raft)
		for _, other := range []error{ErrNotLeader, ErrNotDone, ErrUnknown} {
			require.Equal(t, other == row.want, errors.Is(err, other), "raft says %q", row.raft)
		}
	}
}

// ofFirst is a cluster at the first version.
func ofFirst() uint32 { return 1 }

// noRaft is to be asked nothing.
type noRaft struct{ Applier }

func TestCommandOfAnotherVersionIsNotProposed(t *testing.T) {
	store := &Store{Raft: noRaft{}, Now: func() int64 { return 1 }, Version: ofFirst}
	_, err := store.Propose(t.Context(), newerCommand(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}}))
	require.ErrorIs(t, err, ErrNotDone)
	require.ErrorIs(t, err, codec.ErrNewer)
	_, err = store.Propose(t.Context(), olderCommand())
	require.ErrorIs(t, err, ErrNotDone)
	require.ErrorIs(t, err, codec.ErrOlder)
}
