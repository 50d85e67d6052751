package namespace

import (
	"lockfs/raftstore/fault"
	"lockfs/raftstore/storepb"
)

// applyOnce does a command of a session unless it was done before; then its first reply is the answer.
func (ns *Namespace) applyOnce(cmd *storepb.Command) *storepb.Result {
	if cmd.GetSession() == 0 {
		return ns.applyWithoutSession(cmd)
	}
	switch op := cmd.GetOp().GetOp().(type) {
	case *storepb.Op_OpenSession:
		return ns.openSession(cmd.GetSession(), op.OpenSession)
	case *storepb.Op_CloseSession:
		return ns.closeSession(cmd.GetSession(), op.CloseSession)
	case *storepb.Op_Cancel:
		return ns.cancel(cmd.GetSession(), op.Cancel.GetSeq())
	}
	s, found := ns.sessions.byID.Get(cmd.GetSession())
	if !found {
		return fail(storepb.Code_SESSION_FORGOTTEN)
	}
	if cmd.GetSeq() <= s.acked {
		return fail(storepb.Code_DUPLICATE)
	}
	if first, done := ns.sessions.reply(cmd.GetSession(), cmd.GetSeq()); done && !fault.NoDedup {
		ns.sessions.acknowledge(ns.index, s, 0)
		return first.result
	}
	if s.endedIndex != 0 {
		return fail(storepb.Code_SESSION_UNKNOWN)
	}
	s = ns.sessions.acknowledge(ns.index, s, min(cmd.GetAcked(), cmd.GetSeq()-1))
	if s.replies >= MaxReplies {
		return fail(storepb.Code_TOO_MANY_REQUESTS)
	}
	result, undo := ns.applyOp(cmd)
	ns.sessions.keepReply(&reply{session: cmd.GetSession(), seq: cmd.GetSeq(), result: result, undo: undo})
	return result
}

// applyWithoutSession does what the leader itself proposes.
func (ns *Namespace) applyWithoutSession(cmd *storepb.Command) *storepb.Result {
	switch cmd.GetOp().GetOp().(type) {
	case *storepb.Op_OpenSession, *storepb.Op_CloseSession, *storepb.Op_Cancel:
		return fail(storepb.Code_INVALID)
	}
	result, _ := ns.applyOp(cmd)
	return result
}
