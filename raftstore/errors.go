package raftstore

import (
	"fmt"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// ApplyError says that a node cannot apply an entry of the log exactly as the other nodes do. The node
// applies nothing more, and its state must not be used.
type ApplyError struct {
	Index     ids.Index
	Term      ids.Term
	Session   ids.Session
	Seq       ids.Sequence
	Operation string // as in store.proto; empty: unknown
	Err       error  // [codec.ErrCorrupt], [codec.ErrNewer], [codec.ErrOlder] or a panic
	Stack     []byte // of a panic
}

// Error describes the entry and the cause.
func (e *ApplyError) Error() string {
	operation := e.Operation
	if operation == "" {
		operation = "an operation that this program does not know"
	}
	return fmt.Sprintf("entry %d of term %d (%s, session %d, number %d) cannot be applied: %v",
		e.Index, e.Term, operation, e.Session, e.Seq, e.Err)
}

// Unwrap returns the cause.
func (e *ApplyError) Unwrap() error { return e.Err }

// Operation returns the name of a command's operation in store.proto; empty: unknown.
func Operation(cmd *storepb.Command) string {
	op := cmd.GetOp().ProtoReflect()
	if field := op.WhichOneof(op.Descriptor().Oneofs().ByName("op")); field != nil {
		return string(field.Name())
	}
	return ""
}

func applyError(entry *raft.Log, cmd *storepb.Command, err error) *ApplyError {
	return &ApplyError{
		Index: ids.Index(entry.Index), Term: ids.Term(entry.Term), Session: ids.Session(cmd.GetSession()), Seq: ids.Sequence(cmd.GetSeq()),
		Operation: Operation(cmd), Err: err,
	}
}

// DistrustedError is the reason why a node stops: the other nodes found that its state differs from theirs.
type DistrustedError struct{ Alarm *storepb.Alarm }

func (e *DistrustedError) Error() string { return e.Alarm.GetText() }
