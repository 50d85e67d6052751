package raftstore

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// raised is a state machine to which a raise to the second version is proposed at once; known says what its only member knows.
func raised(t *testing.T, own, known version.Range, told func(uint32) error) (fsm *FSM, answer any, failed *error) {
	failed = new(error)
	fsm = NewFSM(namespace.New(), "self", func(err error) { *failed = err })
	fsm.Versions(own, told)
	member := &storepb.Member{Id: "a", Name: "a", OldestVersion: known.Oldest, NewestVersion: known.Newest}
	for i, op := range []*storepb.Op{
		{Op: &storepb.Op_SetMember{SetMember: &storepb.SetMember{Member: member}}},
		{Op: &storepb.Op_SetVersion{SetVersion: &storepb.SetVersion{Version: 2}}},
	} {
		answer = fsm.Apply(&raft.Log{Index: uint64(i + 1), Term: 2, Data: encoded(t, &storepb.Command{Op: op})})
	}
	return fsm, answer, failed
}

var one, both = version.Range{Oldest: 1, Newest: 1}, version.Range{Oldest: 1, Newest: 2}

// TestTheRaiseIsToldBeforeItIsApplied: what is of the new version is on disk only once the disk says that it may be.
func TestTheRaiseIsToldBeforeItIsApplied(t *testing.T) {
	told := []uint32{}
	fsm, answer, failed := raised(t, both, both, func(to uint32) error {
		told = append(told, to)
		return nil
	})
	require.NoError(t, *failed)
	require.Equal(t, storepb.Code_OK, answer.(*storepb.Result).GetCode())
	require.Equal(t, []uint32{2}, told)
	fsm.View(func(ns *namespace.Namespace) { require.EqualValues(t, 2, ns.Version()) })

	full := errors.New("the disk is full")
	_, answer, failed = raised(t, both, both, func(uint32) error { return full })
	require.ErrorIs(t, answer.(error), full)
	require.ErrorIs(t, *failed, full)
}

// TestAnOlderProgramStopsAtTheRaise, and only if the cluster is raised.
func TestAnOlderProgramStopsAtTheRaise(t *testing.T) {
	neverTold := func(uint32) error {
		t.Error("nothing of that version may be here")
		return nil
	}
	fsm, answer, failed := raised(t, one, one, neverTold)
	require.NoError(t, *failed)
	require.Equal(t, storepb.Code_INVALID, answer.(*storepb.Result).GetCode())
	fsm.View(func(ns *namespace.Namespace) { require.EqualValues(t, 1, ns.Version()) })

	fsm, answer, failed = raised(t, one, both, neverTold)
	require.ErrorIs(t, answer.(error), codec.ErrNewer)
	require.ErrorContains(t, *failed, "entry 2 of term 2 (set_version, session 0, number 0) cannot be applied: "+
		"the cluster runs at version 2, and this program knows 1: a newer version wrote it: update this node")
	requireStopped(t, fsm, *failed)
}

// TestAnOlderProgramTakesNoLaterSnapshot has one of a leader that runs at a version that this program does not know.
func TestAnOlderProgramTakesNoLaterSnapshot(t *testing.T) {
	leader, _, _ := raised(t, both, both, nil)
	var failed error
	fsm := NewFSM(namespace.New(), "self", func(err error) { failed = err })
	fsm.Versions(one, nil)
	require.ErrorIs(t, fsm.Restore(io.NopCloser(bytes.NewReader(snapshotBytes(t, leader.State())))), codec.ErrNewer)
	requireStopped(t, fsm, failed)
}
