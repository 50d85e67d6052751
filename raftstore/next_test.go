//go:build next

package raftstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/storepb"
)

// TestNextOperationIsNotProposed in a cluster at the first version.
func TestNextOperationIsNotProposed(t *testing.T) {
	store := &Store{Raft: noRaft{}, Now: func() int64 { return 1 }, Version: ofFirst}
	_, err := store.Propose(t.Context(), &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_SetNote{SetNote: &storepb.SetNote{Text: "t"}}}})
	require.ErrorIs(t, err, ErrNotDone)
	require.ErrorIs(t, err, codec.ErrNotYet)
}
