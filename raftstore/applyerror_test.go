package raftstore

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func encoded(t testing.TB, cmd *storepb.Command) []byte {
	data, err := codec.EncodeCommand(cmd)
	require.NoError(t, err)
	return data
}

// TestPanicStopsTheStateMachine has an operation panic: the entry is named, and nothing is done or answered any more.
func TestPanicStopsTheStateMachine(t *testing.T) {
	var failed []error
	fsm := NewFSM(namespace.New(), "self", func(err error) { failed = append(failed, err) })
	mkdir := func(index uint64) any {
		cmd := &storepb.Command{Session: 7, Seq: index, Op: &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{Parent: namespace.RootIno, Name: []byte("a"), Mode: someFile}}}}
		return fsm.Apply(&raft.Log{Index: index, Term: 3, Data: encoded(t, cmd)})
	}
	open := &storepb.Command{Session: 7, Op: &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{}}}}
	require.IsType(t, new(storepb.Result), fsm.Apply(&raft.Log{Index: 1, Term: 3, Data: encoded(t, open)}))
	waits := make(chan error)
	go func() {
		waits <- fsm.WaitFor(context.Background(), func(ns *namespace.Namespace) bool { return ns.Index() > 1 })
	}()
	fsm.mu.Lock()
	fsm.ns = new(namespace.Namespace) // has no trees
	fsm.mu.Unlock()
	err, isError := mkdir(2).(*ApplyError)
	require.True(t, isError)
	require.Equal(t, []error{err}, failed)
	require.ErrorContains(t, err, "entry 2 of term 3 (create, session 7, number 2) cannot be applied: panic: ")
	require.Contains(t, string(err.Stack), "namespace.(*Namespace).Apply")
	require.ErrorIs(t, <-waits, err)
	requireStopped(t, fsm, err)
	require.Equal(t, err, mkdir(3))
	require.Len(t, failed, 1)
}

func TestDamagedEntryStopsTheStateMachine(t *testing.T) {
	var failed error
	fsm := NewFSM(namespace.New(), "self", func(err error) { failed = err })
	data := encoded(t, &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
	data[0] ^= 1
	err, isError := fsm.Apply(&raft.Log{Index: 9, Data: data}).(*ApplyError)
	require.True(t, isError)
	require.ErrorIs(t, err, codec.ErrCorrupt)
	require.Equal(t, err, failed)
	requireStopped(t, fsm, err)
}

// newerCommand has a part that this program does not know.
func newerCommand(cmd *storepb.Command) *storepb.Command {
	cmd.GetOp().ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 400, protowire.VarintType), 1))
	return cmd
}

// TestNewerCommandStopsTheStateMachine has an operation that is not known, and one of which a field is not.
func TestNewerCommandStopsTheStateMachine(t *testing.T) {
	for name, cmd := range map[string]*storepb.Command{
		"an operation that this program does not know": newerCommand(&storepb.Command{Session: 4, Seq: 5, Op: new(storepb.Op)}),
		"tick": newerCommand(&storepb.Command{Session: 4, Seq: 5, Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}}),
	} {
		var failed error
		fsm := NewFSM(namespace.New(), "self", func(err error) { failed = err })
		before := fsm.State().Hash()
		err, isError := fsm.Apply(&raft.Log{Index: 9, Term: 2, Data: encoded(t, cmd)}).(*ApplyError)
		require.True(t, isError)
		require.Equal(t, err, failed)
		require.ErrorIs(t, err, codec.ErrNewer)
		require.ErrorContains(t, err, "entry 9 of term 2 ("+name+", session 4, number 5)")
		require.ErrorContains(t, err, "field 400 of Op")
		require.ErrorContains(t, err, "update this node")
		require.Equal(t, before, fsm.ns.Snapshot().Hash())
		requireStopped(t, fsm, err)
	}
}

// olderCommand creates a lock whose facts have their format as a word.
func olderCommand() *storepb.Command {
	create := &storepb.Create{Parent: namespace.RootIno, Name: []byte("lock"), Facts: new(storepb.Facts)}
	create.GetFacts().ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "pid"))
	return &storepb.Command{Session: 4, Seq: 5, Op: &storepb.Op{Op: &storepb.Op_Create{Create: create}}}
}

// TestOlderCommandStopsTheStateMachine: without what it said of the lock, the lock would be anybody's.
func TestOlderCommandStopsTheStateMachine(t *testing.T) {
	var failed error
	fsm := NewFSM(namespace.New(), "self", func(err error) { failed = err })
	before := fsm.State().Hash()
	err, isError := fsm.Apply(&raft.Log{Index: 9, Term: 2, Data: encoded(t, olderCommand())}).(*ApplyError)
	require.True(t, isError)
	require.Equal(t, err, failed)
	require.ErrorIs(t, err, codec.ErrOlder)
	require.ErrorContains(t, err, "entry 9 of term 2 (create, session 4, number 5)")
	require.ErrorContains(t, err, "field 1 of Facts")
	require.ErrorContains(t, err, "start that version again")
	require.Equal(t, before, fsm.ns.Snapshot().Hash())
	requireStopped(t, fsm, err)
}

// TestOlderSnapshotStopsTheStateMachine has one of the version before.
func TestOlderSnapshotStopsTheStateMachine(t *testing.T) {
	content := snapshotBytes(t, namespace.New().Snapshot())
	content[bytes.IndexByte(content, '\n')+3]-- // the version
	var failed error
	fsm := NewFSM(namespace.New(), "self", func(err error) { failed = err })
	require.ErrorIs(t, fsm.Restore(io.NopCloser(bytes.NewReader(content))), codec.ErrOlder)
	require.ErrorIs(t, failed, codec.ErrOlder)
	requireStopped(t, fsm, failed)
}

// TestNewerSnapshotStopsTheStateMachine has one of a version that this program does not read.
func TestNewerSnapshotStopsTheStateMachine(t *testing.T) {
	content := snapshotBytes(t, namespace.New().Snapshot())
	content[bytes.IndexByte(content, '\n')+3]++ // the version, behind the length of the header and the number of that field
	var failed error
	fsm := NewFSM(namespace.New(), "self", func(err error) { failed = err })
	require.ErrorIs(t, fsm.Restore(io.NopCloser(bytes.NewReader(content))), codec.ErrNewer)
	require.ErrorIs(t, failed, codec.ErrNewer)
	requireStopped(t, fsm, failed)
}

var statFs = &storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{}}}

func snapshotBytes(tb testing.TB, s *namespace.Snapshot) []byte {
	var out bytes.Buffer
	require.NoError(tb, s.Write(&out))
	return out.Bytes()
}

func requireStopped(t *testing.T, fsm *FSM, why error) {
	_, err := fsm.Query(statFs)
	require.ErrorIs(t, err, why)
	require.Nil(t, fsm.QuerySince(&storepb.Query{Query: statFs.GetQuery(), Since: 1}))
	_, err = fsm.AwaitLock(&storepb.AwaitLock{})
	require.ErrorIs(t, err, why)
	_, err = fsm.Snapshot()
	require.ErrorIs(t, err, why, "raft would believe that it holds all entries")
	require.ErrorIs(t, fsm.WaitFor(t.Context(), func(*namespace.Namespace) bool { return true }), why)
	require.ErrorIs(t, fsm.Restore(io.NopCloser(bytes.NewReader(snapshotBytes(t, namespace.New().Snapshot())))), why)
	require.Nil(t, fsm.State())
	fsm.View(func(*namespace.Namespace) { t.Error("it may have been left in the middle of a command") })
}
