package codec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

func encoded(t testing.TB, cmd *storepb.Command) []byte {
	data, err := EncodeCommand(cmd)
	require.NoError(t, err)
	return data
}

// someCommands are commands with much in them.
func someCommands() map[string]*storepb.Command {
	process := &storepb.Process{PidNamespace: 1, Pid: 1, Start: 100, BootId: "boot"}
	caller := &storepb.Caller{Host: "host", Uid: 1, Gid: 1, Pid: 5, Lineage: []*storepb.Process{process, process}}
	commands := make(map[string]*storepb.Command)
	for name, op := range map[string]*storepb.Op{
		"create": {Op: &storepb.Op_Create{Create: &storepb.Create{
			Parent: 1, Name: []byte("name"), Mode: 0o100644, Content: make([]byte, 100),
			Facts: &storepb.Facts{Format: storepb.Format_PID, Holder: "p", Pid: 1, Guard: storepb.Guard_HOST, OnStale: storepb.OnStale_REMOVE, Process: process},
		}}},
		"unlink": {Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: 1, Name: []byte("name"), Observations: []*storepb.Observation{{Name: []byte("name")}, {Token: 7}}}}},
		"lock":   {Op: &storepb.Op_TakeLock{TakeLock: &storepb.TakeLock{Ino: 5, Type: storepb.LockType_EXCLUSIVE, Kind: storepb.LockKind_RECORD, Owner: 3}}},
		"drop":   {Op: &storepb.Op_DropLocks{DropLocks: &storepb.DropLocks{Ino: 5, Owners: []uint64{1, 2, 3}}}},
		"tick":   {Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}},
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

// everyCommand has each operation that this program knows with everything in it set.
func everyCommand(t *testing.T) []*storepb.Command {
	var commands []*storepb.Command
	for i := range new(storepb.Op).ProtoReflect().Descriptor().Fields().Len() {
		if since[new(storepb.Op).ProtoReflect().Descriptor().Fields().Get(i).FullName()] > version.Newest {
			continue
		}
		cmd := new(storepb.Command)
		filled(cmd.ProtoReflect(), 6, "")
		filled(cmd.GetOp().ProtoReflect(), 5, cmd.GetOp().ProtoReflect().Descriptor().Fields().Get(i).Name())
		require.NotNil(t, cmd.GetOp().GetOp())
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
	fixed := protowire.AppendFixed64(protowire.AppendTag(nil, 2, protowire.Fixed64Type), 1)
	return [][]byte{number, text, fixed}
}

func TestUnknownPartsAreFoundAtAnyDepth(t *testing.T) {
	messages := make(map[protoreflect.FullName]bool)
	for _, cmd := range everyCommand(t) {
		require.NoError(t, CheckKnown(encoded(t, cmd), cmd), "%v", cmd)
		eachMessage(cmd.ProtoReflect(), func(m protoreflect.Message) {
			messages[m.Descriptor().FullName()] = true
			for _, unknown := range later() {
				m.SetUnknown(unknown)
				require.ErrorIs(t, CheckKnown(encoded(t, cmd), cmd), ErrNewer, "%v", cmd)
			}
			m.SetUnknown(nil)
			m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
				if field.Kind() == protoreflect.EnumKind {
					m.Set(field, protoreflect.ValueOfEnum(77))
					require.ErrorIs(t, CheckKnown(encoded(t, cmd), cmd), ErrNewer, "%v", cmd)
					m.Set(field, value)
				}
				return true
			})
		})
	}
	require.Greater(t, len(messages), 28)
	require.ErrorIs(t, CheckKnown(encoded(t, new(storepb.Command)), new(storepb.Command)), ErrNewer)
}

// TestPartsOfEarlierVersionsAreFound has facts in words, and every number that a message had in an earlier version.
func TestPartsOfEarlierVersionsAreFound(t *testing.T) {
	found := make(map[string]bool)
	for _, cmd := range everyCommand(t) {
		eachMessage(cmd.ProtoReflect(), func(m protoreflect.Message) {
			reserved := m.Descriptor().ReservedRanges()
			for i := range reserved.Len() {
				for number := reserved.Get(i)[0]; number < reserved.Get(i)[1]; number++ {
					m.SetUnknown(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), "pid"))
					err := CheckKnown(encoded(t, cmd), cmd)
					require.ErrorIs(t, err, ErrOlder, "%v", cmd)
					require.NotErrorIs(t, err, ErrNewer)
					require.ErrorContains(t, err, fmt.Sprintf("field %d of %s", number, m.Descriptor().Name()))
					found[fmt.Sprintf("%s %d", m.Descriptor().Name(), number)] = true
				}
			}
			m.SetUnknown(nil)
		})
	}
	for _, word := range []string{"Facts 1", "Facts 7", "Facts 8"} {
		require.True(t, found[word], word)
	}
}

func BenchmarkCheckKnown(b *testing.B) {
	for name, cmd := range someCommands() {
		data, err := EncodeCommand(cmd)
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := CheckKnown(data, cmd); err != nil {
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
