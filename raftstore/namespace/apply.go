package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Apply applies the log entry with this index and returns the result. Commands come in the order of their
// indexes. A repeated command of a session changes nothing and gets the first reply. The result belongs to
// the state: callers do not change it.
func (ns *Namespace) Apply(index ids.Index, cmd *storepb.Command) *storepb.Result {
	ns.tree.touched, ns.tree.changedNames = ns.tree.touched[:0], ns.tree.changedNames[:0]
	ns.passTo(index, cmd.GetTime())
	passed := len(ns.tree.touched)
	result := ns.applyOnce(cmd)
	ns.reevaluateUnlocked()
	ns.listLocked()
	ns.touchedOwn = len(ns.tree.touched) > passed
	return result
}

func (ns *Namespace) applyOnce(cmd *storepb.Command) *storepb.Result {
	if cmd.GetSession() == 0 {
		return ns.applyWithoutSession(cmd)
	}
	switch op := cmd.GetOp().GetOp().(type) {
	case *storepb.Op_OpenSession:
		return ns.openSession(ids.Session(cmd.GetSession()), op.OpenSession)
	case *storepb.Op_CloseSession:
		return ns.closeSession(ids.Session(cmd.GetSession()), op.CloseSession)
	case *storepb.Op_Cancel:
		return ns.cancel(ids.Session(cmd.GetSession()), ids.Sequence(op.Cancel.GetSeq()))
	}
	s, found := ns.sessions.byID.Get(ids.Session(cmd.GetSession()))
	if !found {
		return fail(storepb.Code_SESSION_FORGOTTEN)
	}
	if ids.Sequence(cmd.GetSeq()) <= s.acked {
		return fail(storepb.Code_DUPLICATE)
	}
	if first, done := ns.sessions.reply(ids.Session(cmd.GetSession()), ids.Sequence(cmd.GetSeq())); done {
		ns.sessions.acknowledge(ns.index, s, 0)
		return first.result
	}
	if s.endedIndex != 0 {
		return fail(storepb.Code_SESSION_UNKNOWN)
	}
	s = ns.sessions.acknowledge(ns.index, s, ids.Sequence(min(cmd.GetAcked(), cmd.GetSeq()-1)))
	if s.replies >= MaxReplies {
		return fail(storepb.Code_TOO_MANY_REQUESTS)
	}
	result, undo := ns.applyOp(cmd)
	ns.sessions.keepReply(&reply{session: ids.Session(cmd.GetSession()), seq: ids.Sequence(cmd.GetSeq()), result: result, undo: undo})
	return result
}

// passTo does everything due by the time of a command.
func (ns *Namespace) passTo(index ids.Index, now int64) {
	ns.index, ns.removed = index, nil
	ns.time = max(ns.time, now)
	ns.locks.Begin(ns.index, ns.time)
	ns.trust.Begin(ns.index, ns.time)
	ns.initRoot()
	ns.tree.dropExpiredOrphans(ns.time)
	ns.sessions.dropExpiredSessions(ns.time)
	ns.expireLocks()
	ns.locks.Expire()
	ns.emitDue()
}

// initRoot sets the times of the root directory to that of the first command.
func (ns *Namespace) initRoot() {
	root, found := ns.tree.inode(RootIno)
	if !found || root.btime != 0 {
		return
	}
	born := *root
	born.atime, born.mtime, born.ctime, born.btime = ns.time, ns.time, ns.time, ns.time
	ns.tree.putInode(&born)
}

// applyOp applies the operation of a command. undo says how Cancel reverts an exclusive creation.
func (ns *Namespace) applyOp(cmd *storepb.Command) (result *storepb.Result, undo *storepb.Undo) {
	if len(cmd.GetCaller().GetHost()) > MaxName {
		return fail(storepb.Code_INVALID), nil
	}
	if cmd.GetCaller().GetSquashed() {
		if code := ns.checkRootSquashed(cmd.GetCaller(), cmd.GetOp()); code != storepb.Code_OK {
			return fail(code), nil
		}
	}
	switch op := cmd.GetOp().GetOp().(type) {
	case *storepb.Op_Create:
		result, undo = ns.create(cmd.GetCaller(), op.Create)
		return ns.indexed(result), undo
	case *storepb.Op_Link:
		result, undo = ns.link(cmd.GetCaller(), op.Link)
		return ns.indexed(result), undo
	case *storepb.Op_Rename:
		result, undo = ns.rename(cmd, op.Rename)
		return ns.indexed(result), undo
	case *storepb.Op_Unlink:
		return ns.indexed(ns.unlink(cmd, op.Unlink)), nil
	case *storepb.Op_SetAttr:
		return ns.setAttr(cmd.GetCaller(), op.SetAttr), nil
	case *storepb.Op_SetContent:
		return ns.setContent(cmd, op.SetContent), nil
	case *storepb.Op_SetXattr:
		return ns.setXattr(cmd.GetCaller(), op.SetXattr), nil
	case *storepb.Op_RemoveXattr:
		return ns.removeXattr(op.RemoveXattr), nil
	case *storepb.Op_Pin:
		return ns.tree.setPinned(ids.Session(cmd.GetSession()), ids.Inode(op.Pin.GetIno()), true), nil
	case *storepb.Op_Unpin:
		return ns.tree.setPinned(ids.Session(cmd.GetSession()), ids.Inode(op.Unpin.GetIno()), false), nil
	case *storepb.Op_EndSession:
		return ns.endSession(op.EndSession), nil
	case *storepb.Op_SetMember:
		return ns.setMember(cmd.GetCaller(), op.SetMember.GetMember()), nil
	case *storepb.Op_SetVersion:
		return ns.setVersion(op.SetVersion.GetVersion()), nil
	case *storepb.Op_RemoveMember:
		return ns.removeMember(cmd.GetCaller(), op.RemoveMember.GetId()), nil
	case *storepb.Op_SetLimits:
		return ns.setLimits(op.SetLimits), nil
	case *storepb.Op_ProcessGone:
		return ns.processGone(ids.Session(cmd.GetSession()), op.ProcessGone), nil
	case *storepb.Op_SetRule:
		return ns.setRule(cmd.GetCaller(), op.SetRule.GetRule()), nil
	case *storepb.Op_DeleteRule:
		return ns.deleteRule(cmd.GetCaller(), op.DeleteRule.GetPattern()), nil
	case *storepb.Op_ForgetHost:
		return ns.forgetHost(cmd.GetCaller(), op.ForgetHost.GetName()), nil
	case *storepb.Op_TakeLock:
		return ns.takeLock(cmd, op.TakeLock), nil
	case *storepb.Op_DropLocks:
		return ns.dropLocks(ids.Session(cmd.GetSession()), op.DropLocks), nil
	case *storepb.Op_InterruptLock:
		return fail(ns.locks.Interrupt(ids.Session(cmd.GetSession()), op.InterruptLock)), nil
	case *storepb.Op_Tick:
		return ns.tick(), nil
	case *storepb.Op_RaiseAlarm:
		return ns.raiseAlarm(op.RaiseAlarm.GetAlarm()), nil
	case *storepb.Op_ClearAlarm:
		return ns.clearAlarm(cmd.GetCaller(), op.ClearAlarm.GetNumber()), nil
	case *storepb.Op_SetQuota:
		return ns.setQuota(cmd.GetCaller(), op.SetQuota), nil
	case *storepb.Op_DeleteQuota:
		return ns.deleteQuota(cmd.GetCaller(), op.DeleteQuota), nil
	case *storepb.Op_FreezeState:
		return &storepb.Result{Index: uint64(ns.index)}, nil
	}
	if cmd.GetSession() == 0 {
		return ns.changeTrust(cmd.GetCaller(), cmd.GetOp()), nil
	}
	return fail(storepb.Code_UNKNOWN_COMMAND), nil
}

// indexed adds the index to the result of a change of names, for finding it among the events.
func (ns *Namespace) indexed(result *storepb.Result) *storepb.Result {
	if result.GetCode() == storepb.Code_OK {
		result.Index = uint64(ns.index)
	}
	return result
}

func (ns *Namespace) applyWithoutSession(cmd *storepb.Command) *storepb.Result {
	switch cmd.GetOp().GetOp().(type) {
	case *storepb.Op_OpenSession, *storepb.Op_CloseSession, *storepb.Op_Cancel:
		return fail(storepb.Code_INVALID)
	}
	result, _ := ns.applyOp(cmd)
	return result
}
