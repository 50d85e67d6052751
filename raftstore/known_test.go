package raftstore

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/raftstore/storepb"
)

// someCommands are commands with much in them.
func someCommands() map[string]*storepb.Command {
	caller := &storepb.Caller{Host: "host", Uid: 1, Gid: 1, Pid: 5, Lineage: []*storepb.Process{processOf(1), processOf(2)}}
	commands := make(map[string]*storepb.Command)
	for name, op := range map[string]*storepb.Op{
		"create": opOf(&storepb.Create{
			Parent: 1, Name: []byte("name"), Mode: someFile, Content: make([]byte, 100), Facts: pidFacts("pid", processOf(1)),
		}),
		"unlink": opOf(&storepb.Unlink{Parent: 1, Name: []byte("name"), Looks: []*storepb.Look{{Name: []byte("name")}, {Token: 7}}}),
		"lock":   opOf(&storepb.TakeLock{Ino: 5, Type: exclusive, Kind: storepb.LockKind_RECORD, Owner: 3}),
		"drop":   opOf(&storepb.DropLocks{Ino: 5, Owners: []uint64{1, 2, 3}}),
		"tick":   opOf(&storepb.Tick{}),
	} {
		commands[name] = &storepb.Command{Session: 1, Seq: 4, Acked: 3, Time: 1 << 60, Caller: caller, Op: op}
	}
	return commands
}

// filled is a message in which everything is set, with lists of two; choose says which of a oneof.
func filled(m protoreflect.Message, depth int, choose protoreflect.Name) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if choice := field.ContainingOneof(); choice != nil && !choice.IsSynthetic() && field.Name() != choose {
			continue
		}
		if field.Kind() == protoreflect.MessageKind && depth == 0 {
			continue
		}
		if field.IsList() {
			for range 2 {
				m.Mutable(field).List().Append(filledValue(m.Mutable(field).List().NewElement(), field, depth))
			}
			continue
		}
		m.Set(field, filledValue(m.NewField(field), field, depth))
	}
}

func filledValue(value protoreflect.Value, field protoreflect.FieldDescriptor, depth int) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.MessageKind:
		filled(value.Message(), depth-1, "")
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("s")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("b"))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(300)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(-1)
	default:
		return protoreflect.ValueOfUint64(1 << 60)
	}
	return value
}

// everyCommand has each operation with everything in it set.
func everyCommand(t *testing.T) []*storepb.Command {
	var commands []*storepb.Command
	for i := range new(storepb.Op).ProtoReflect().Descriptor().Fields().Len() {
		cmd := new(storepb.Command)
		filled(cmd.ProtoReflect(), 6, "")
		filled(cmd.GetOp().ProtoReflect(), 5, cmd.GetOp().ProtoReflect().Descriptor().Fields().Get(i).Name())
		require.NotEmpty(t, Operation(cmd))
		commands = append(commands, cmd)
	}
	return commands
}

// eachMessage visits a message and those within it.
func eachMessage(m protoreflect.Message, visit func(protoreflect.Message)) {
	visit(m)
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Kind() != protoreflect.MessageKind:
		case field.IsList():
			for i := range value.List().Len() {
				eachMessage(value.List().Get(i).Message(), visit)
			}
		default:
			eachMessage(value.Message(), visit)
		}
		return true
	})
}

// later are fields of a newer version: with a number of its own, and with one that is something else in this version.
func later() [][]byte {
	number := protowire.AppendVarint(protowire.AppendTag(nil, 400, protowire.VarintType), 1)
	text := protowire.AppendBytes(protowire.AppendTag(nil, 300, protowire.BytesType), []byte("x"))
	fixed := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 1)
	return [][]byte{number, text, fixed}
}

func TestUnknownPartsAreFoundAtAnyDepth(t *testing.T) {
	messages := make(map[protoreflect.FullName]bool)
	for _, cmd := range everyCommand(t) {
		require.NoError(t, checkKnown(encoded(t, cmd), cmd), "%v", cmd)
		eachMessage(cmd.ProtoReflect(), func(m protoreflect.Message) {
			messages[m.Descriptor().FullName()] = true
			for _, unknown := range later() {
				m.SetUnknown(unknown)
				require.ErrorIs(t, checkKnown(encoded(t, cmd), cmd), ErrNewer, "%v", cmd)
			}
			m.SetUnknown(nil)
			m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
				if field.Kind() == protoreflect.EnumKind {
					m.Set(field, protoreflect.ValueOfEnum(77))
					require.ErrorIs(t, checkKnown(encoded(t, cmd), cmd), ErrNewer, "%v", cmd)
					m.Set(field, value)
				}
				return true
			})
		})
	}
	require.Greater(t, len(messages), 28)
	require.ErrorIs(t, checkKnown(encoded(t, new(storepb.Command)), new(storepb.Command)), ErrNewer)
}

// newerCommand has a part that this program does not know.
func newerCommand(cmd *storepb.Command) *storepb.Command {
	cmd.GetOp().ProtoReflect().SetUnknown(later()[0])
	return cmd
}

// TestNewerCommandStopsTheStateMachine has an operation that is not known, and one of which a field is not.
func TestNewerCommandStopsTheStateMachine(t *testing.T) {
	for name, cmd := range map[string]*storepb.Command{
		"an operation that this program does not know": newerCommand(&storepb.Command{Session: 4, Seq: 5, Op: new(storepb.Op)}),
		"tick": newerCommand(&storepb.Command{Session: 4, Seq: 5, Op: opOf(&storepb.Tick{})}),
	} {
		var failed error
		fsm := NewFSM(NewNamespace(), func(err error) { failed = err })
		before := fsm.State().Hash()
		err, isError := fsm.Apply(&raft.Log{Index: 9, Term: 2, Data: encoded(t, cmd)}).(*ApplyError)
		require.True(t, isError)
		require.Equal(t, err, failed)
		require.ErrorIs(t, err, ErrNewer)
		require.ErrorContains(t, err, "entry 9 of term 2 ("+name+", session 4, number 5)")
		require.ErrorContains(t, err, "field 400 of Op")
		require.ErrorContains(t, err, "update this node")
		require.Equal(t, before, fsm.ns.Snapshot().Hash())
		requireStopped(t, fsm, err)
	}
}

// noRaft is to be asked nothing.
type noRaft struct{ Applier }

func TestNewerCommandIsNotProposed(t *testing.T) {
	store := &Store{Raft: noRaft{}, Now: func() int64 { return 1 }}
	_, err := store.Propose(t.Context(), newerCommand(&storepb.Command{Op: opOf(&storepb.Tick{})}))
	require.ErrorIs(t, err, ErrNotDone)
	require.ErrorIs(t, err, ErrNewer)
}

// TestNewerSnapshotStopsTheStateMachine has a header, a record and a message within one that this program does not know all of.
func TestNewerSnapshotStopsTheStateMachine(t *testing.T) {
	header := func() *storepb.SnapshotHeader {
		return &storepb.SnapshotHeader{Version: snapshotVersion, NextIno: 200, NextCookie: 200, Records: 1}
	}
	root := func() *storepb.Record {
		return (&inode{ino: RootIno, mode: rootMode, nlink: 2, parent: RootIno}).record()
	}
	restored(t, signed(t, header(), []*storepb.Record{root()}))
	newer := make(map[string][]byte)
	for i, unknown := range later() {
		h, outer, inner := header(), root(), root()
		h.ProtoReflect().SetUnknown(unknown)
		newer[fmt.Sprint("header ", i)] = signed(t, h, []*storepb.Record{root()})
		outer.ProtoReflect().SetUnknown(unknown)
		newer[fmt.Sprint("record ", i)] = signed(t, header(), []*storepb.Record{outer})
		inner.GetInode().GetAttr().ProtoReflect().SetUnknown(unknown)
		newer[fmt.Sprint("attributes ", i)] = signed(t, header(), []*storepb.Record{inner})
	}
	kind := new(storepb.Record)
	kind.ProtoReflect().SetUnknown(later()[1])
	newer["a kind of record"] = signed(t, header(), []*storepb.Record{kind})
	newer["another version"] = signed(t, &storepb.SnapshotHeader{Version: snapshotVersion + 1}, nil)
	for what, content := range newer {
		_, err := Restore(bytes.NewReader(content))
		require.ErrorIs(t, err, ErrNewer, what)
		require.NotErrorIs(t, err, ErrCorrupt, what)
		var failed error
		fsm := NewFSM(NewNamespace(), func(err error) { failed = err })
		require.ErrorIs(t, fsm.Restore(io.NopCloser(bytes.NewReader(content))), ErrNewer, what)
		require.ErrorIs(t, failed, ErrNewer, what)
		requireStopped(t, fsm, failed)
		if what != "another version" {
			content[len(content)-1] ^= 1
			_, err = Restore(bytes.NewReader(content))
			require.ErrorIs(t, err, ErrCorrupt, what)
		}
	}
}

func BenchmarkCheckKnown(b *testing.B) {
	for name, cmd := range someCommands() {
		data, err := EncodeCommand(cmd)
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := checkKnown(data, cmd); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+" decode", func(b *testing.B) {
			for b.Loop() {
				if _, err := DecodeCommand(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
