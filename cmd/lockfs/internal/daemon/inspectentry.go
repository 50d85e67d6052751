package daemon

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/cluster/consensus"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore"
	"lockfs/raftstore/codec"
)

// inspectedEntry is the output of `lockfs server inspect INDEX --json`.
type inspectedEntry struct {
	Index      uint64            `json:"index"`
	Term       uint64            `json:"term"`
	Type       string            `json:"type"`
	AppendedAt *time.Time        `json:"appended_at,omitempty"` // by the leader's clock
	Command    *inspectedCommand `json:"command,omitempty"`
	Servers    map[string]string `json:"servers,omitempty"` // ID to address
	Error      string            `json:"error,omitempty"`   // why it is unreadable
}

type inspectedCommand struct {
	Session   uint64         `json:"session"` // 0: the cluster
	Seq       uint64         `json:"seq"`
	Acked     uint64         `json:"acked"`
	Time      string         `json:"cluster_time"`
	Caller    map[string]any `json:"caller"`
	Operation string         `json:"operation"` // empty: unknown to this program
	Fields    map[string]any `json:"fields"`
	Unknown   []string       `json:"unknown,omitempty"` // fields unknown to this program, as numbers below their messages
}

func describeEntry(entry *consensus.Entry) *inspectedEntry {
	shown := &inspectedEntry{Index: uint64(entry.Index), Term: uint64(entry.Term), Type: entry.Type, Servers: entry.Servers}
	if !entry.AppendedAt.IsZero() {
		at := entry.AppendedAt.UTC()
		shown.AppendedAt = &at
	}
	if entry.Err != nil {
		shown.Error = entry.Err.Error()
	}
	cmd := entry.Command
	if cmd == nil {
		return shown
	}
	shown.Command = &inspectedCommand{
		Session: cmd.GetSession(), Seq: cmd.GetSeq(), Acked: cmd.GetAcked(), Time: timeOf(cmd.GetTime()),
		Caller: setFields(cmd.GetCaller()), Operation: raftstore.Operation(cmd), Fields: map[string]any{},
		Unknown: unknownParts(nil, "", cmd.ProtoReflect()),
	}
	if name := shown.Command.Operation; name != "" {
		op := cmd.GetOp().ProtoReflect()
		shown.Command.Fields = setFields(op.Get(op.Descriptor().Fields().ByName(protoreflect.Name(name))).Message().Interface())
	}
	return shown
}

// setFields returns the fields of a message by their names in store.proto. Binary data is in base64, with a
// suffix in the name.
func setFields(m proto.Message) map[string]any {
	fields := make(map[string]any)
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name := string(field.Name())
		if field.Kind() == protoreflect.BytesKind && !field.IsList() && !utf8.Valid(value.Bytes()) {
			fields[name+"_base64"] = base64.StdEncoding.EncodeToString(value.Bytes())
			return true
		}
		if !field.IsList() {
			fields[name] = valueOf(field, value)
			return true
		}
		list := make([]any, value.List().Len())
		for i := range list {
			list[i] = valueOf(field, value.List().Get(i))
		}
		fields[name] = list
		return true
	})
	return fields
}

func valueOf(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return setFields(value.Message().Interface())
	case protoreflect.BytesKind:
		return string(value.Bytes())
	case protoreflect.EnumKind:
		if name := field.Enum().Values().ByNumber(value.Enum()); name != nil {
			return string(name.Name())
		}
		return int32(value.Enum())
	}
	return value.Interface()
}

// unknownParts adds the fields of a message and its parts that are unknown to this program.
func unknownParts(found []string, path string, m protoreflect.Message) []string {
	for _, number := range codec.UnknownFields(m) {
		found = append(found, fmt.Sprintf("%s%d", path, number))
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Kind() != protoreflect.MessageKind {
			return true
		}
		below := path + string(field.Name()) + "."
		if !field.IsList() {
			found = unknownParts(found, below, value.Message())
			return true
		}
		for i := range value.List().Len() {
			found = unknownParts(found, below, value.List().Get(i).Message())
		}
		return true
	})
	return found
}

// printEntry prints an entry as text.
func printEntry(w io.Writer, entry *consensus.Entry) error {
	shown := describeEntry(entry)
	lines := []string{fmt.Sprintf("entry %d of term %d: %s", shown.Index, shown.Term, shown.Type)}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if shown.AppendedAt != nil {
		add("  appended   %s", shown.AppendedAt.Format(time.RFC3339Nano))
	}
	for _, id := range slices.Sorted(maps.Keys(shown.Servers)) {
		add("  server     %s  %s", cli.Word(id), cli.Text(shown.Servers[id]))
	}
	if cmd := shown.Command; cmd != nil {
		add("  session    %d, number %d, replies up to %d received", cmd.Session, cmd.Seq, cmd.Acked)
		add("  time       %s", cmd.Time)
		add("  caller     %s", shortly(cmd.Caller))
		operation := cmd.Operation
		if operation == "" {
			operation = "unknown to this program"
		}
		add("  operation  %s", operation)
		for _, name := range slices.Sorted(maps.Keys(cmd.Fields)) {
			add("    %s: %s", name, shortly(cmd.Fields[name]))
		}
		if len(cmd.Unknown) > 0 {
			add("  fields unknown to this program: %s", strings.Join(cmd.Unknown, ", "))
		}
	}
	if shown.Error != "" {
		add("  unreadable: %s", cli.Text(shown.Error))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// longText is the maximum length of a printed text.
const longText = 200

func shortly(value any) string {
	switch v := value.(type) {
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, name+" "+shortly(v[name]))
		}
		return strings.Join(parts, ", ")
	case []any:
		var parts []string
		for _, one := range v {
			parts = append(parts, "("+shortly(one)+")")
		}
		return strings.Join(parts, " ")
	case string:
		if len(v) > longText {
			return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(v[:longText], ""), len(v))
		}
		return cli.Word(v)
	}
	return fmt.Sprint(value)
}

func timeOf(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano)
}
