package fusefs

import (
	"context"
	"fmt"
	"math"
	"time"

	"lockfs/fusefs/trace"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// traced is an Operator that tells of what changes names and locks, while somebody wants to know.
type traced struct {
	Operator
	calls *trace.Calls
}

// Mutate is part of Operator.
func (t *traced) Mutate(ctx context.Context, caller *storepb.Caller, op *storepb.Op) (*storepb.Result, error) {
	if !t.calls.On() {
		return t.Operator.Mutate(ctx, caller, op)
	}
	began := t.calls.Begin()
	result, err := t.Operator.Mutate(ctx, caller, op)
	t.tellOf(caller, op, result, err, began)
	return result, err
}

// Create is part of Operator.
func (t *traced) Create(
	ctx context.Context, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (*storepb.Result, error) {
	if !t.calls.On() {
		return t.Operator.Create(ctx, caller, op, answer)
	}
	began := t.calls.Begin()
	result, err := t.Operator.Create(ctx, caller, op, answer)
	t.tellOf(caller, op, result, err, began)
	return result, err
}

// tellLock tells of a request for a lock, or a release.
func (t *traced) tellLock(caller *storepb.Caller, op *storepb.TakeLock, result *storepb.Result, err error, began time.Duration) {
	call := &lockjson.Call{
		Call: lockjson.CallLock, Session: op.GetSession(), Inode: op.GetIno(), Owner: ownerOf(op.GetKind(), op.GetOwner()),
		Start: op.GetStart(), Last: op.GetEnd(), Shared: op.GetType() == storepb.LockType_SHARED,
	}
	if op.GetType() == storepb.LockType_UNLOCK {
		call.Call = lockjson.CallUnlock
	}
	if op.GetKind() == storepb.LockKind_FLOCK {
		call.Start, call.Last = 0, math.MaxInt64
	}
	t.tell(call, caller, result, err, began)
}

func (t *traced) tellOf(caller *storepb.Caller, op *storepb.Op, result *storepb.Result, err error, began time.Duration) {
	call := &lockjson.Call{Index: result.GetIndex(), Session: uint64(t.Session())}
	switch op := op.GetOp().(type) {
	case *storepb.Op_Create:
		if !op.Create.GetExclusive() {
			return
		}
		call.Call, call.Directory, call.Name = lockjson.CallMake, op.Create.GetParent(), text(op.Create.GetName())
	case *storepb.Op_Link:
		call.Call, call.Directory, call.Name = lockjson.CallMake, op.Link.GetParent(), text(op.Link.GetName())
	case *storepb.Op_Unlink:
		call.Call, call.Directory, call.Name = lockjson.CallRemove, op.Unlink.GetParent(), text(op.Unlink.GetName())
	case *storepb.Op_Rename:
		if op.Rename.GetExchange() {
			return // both names stay
		}
		call.Call, call.Directory, call.Name = lockjson.CallRename, op.Rename.GetParent(), text(op.Rename.GetName())
		call.ToDirectory, call.ToName, call.Exclusive = op.Rename.GetNewParent(), text(op.Rename.GetNewName()), op.Rename.GetNoReplace()
	case *storepb.Op_DropLocks:
		for _, owner := range op.DropLocks.GetOwners() {
			drop := *call
			drop.Call, drop.Inode, drop.Owner = lockjson.CallUnlock, op.DropLocks.GetIno(), ownerOf(op.DropLocks.GetKind(), owner)
			drop.Last = math.MaxInt64
			t.tell(&drop, caller, result, err, began)
		}
		return
	default:
		return
	}
	t.tell(call, caller, result, err, began)
}

func (t *traced) tell(call *lockjson.Call, caller *storepb.Caller, result *storepb.Result, err error, began time.Duration) {
	call.PID, call.UID = caller.GetPid(), caller.GetUid()
	switch {
	case err != nil:
		call.Error = "it is not known whether it was done: " + err.Error()
	case result.GetCode() != storepb.Code_OK:
		call.Error = result.GetCode().String()
	}
	t.calls.Tell(call, began, t.Status())
}

func ownerOf(kind storepb.LockKind, number uint64) string {
	if kind == storepb.LockKind_FLOCK {
		return fmt.Sprintf("flock %x", number)
	}
	return fmt.Sprintf("record %x", number)
}

// text is a name as events print it: U+FFFD for bytes that are no UTF-8.
func text(name []byte) string { return string([]rune(string(name))) }
