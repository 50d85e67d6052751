package raftstore

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func encoded(t testing.TB, cmd *storepb.Command) []byte {
	data, err := EncodeCommand(cmd)
	require.NoError(t, err)
	return data
}

// TestPanicStopsTheStateMachine has an operation panic: the entry is named, and nothing is done or answered any more.
func TestPanicStopsTheStateMachine(t *testing.T) {
	var failed []error
	fsm := NewFSM(NewNamespace(), func(err error) { failed = append(failed, err) })
	mkdir := func(index uint64) any {
		cmd := &storepb.Command{Session: 7, Seq: index, Op: opOf(&storepb.Create{Parent: RootIno, Name: []byte("a"), Mode: someFile})}
		return fsm.Apply(&raft.Log{Index: index, Term: 3, Data: encoded(t, cmd)})
	}
	open := &storepb.Command{Session: 7, Op: opOf(&storepb.OpenSession{})}
	require.IsType(t, new(storepb.Result), fsm.Apply(&raft.Log{Index: 1, Term: 3, Data: encoded(t, open)}))
	waits := make(chan error)
	go func() { waits <- fsm.WaitFor(context.Background(), func(ns *Namespace) bool { return ns.Index() > 1 }) }()
	fsm.ns.byName = nil
	err, isError := mkdir(2).(*ApplyError)
	require.True(t, isError)
	require.Equal(t, []error{err}, failed)
	require.ErrorContains(t, err, "entry 2 of term 3 (create, session 7, number 2) cannot be applied: panic: ")
	require.Contains(t, string(err.Stack), "namespace.go")
	require.ErrorIs(t, <-waits, err)
	requireStopped(t, fsm, err)
	require.Equal(t, err, mkdir(3))
	require.Len(t, failed, 1)
}

func TestDamagedEntryStopsTheStateMachine(t *testing.T) {
	var failed error
	fsm := NewFSM(NewNamespace(), func(err error) { failed = err })
	data := encoded(t, &storepb.Command{Op: opOf(&storepb.Tick{})})
	data[0] ^= 1
	err, isError := fsm.Apply(&raft.Log{Index: 9, Data: data}).(*ApplyError)
	require.True(t, isError)
	require.ErrorIs(t, err, ErrCorrupt)
	require.Equal(t, err, failed)
	requireStopped(t, fsm, err)
}

func requireStopped(t *testing.T, fsm *FSM, why error) {
	_, err := fsm.Query(statFs(0))
	require.ErrorIs(t, err, why)
	require.Nil(t, fsm.QuerySince(&storepb.Query{Query: statFs(0).GetQuery(), Since: 1}))
	_, err = fsm.AwaitLock(t.Context(), &storepb.AwaitLock{})
	require.ErrorIs(t, err, why)
	_, err = fsm.Snapshot()
	require.ErrorIs(t, err, why, "raft would believe that it holds all entries")
	require.ErrorIs(t, fsm.WaitFor(t.Context(), func(*Namespace) bool { return true }), why)
	require.ErrorIs(t, fsm.Restore(io.NopCloser(bytes.NewReader(snapshotBytes(t, NewNamespace().Snapshot())))), why)
	require.Nil(t, fsm.State())
	fsm.View(func(*Namespace) { t.Error("it may have been left in the middle of a command") })
}
