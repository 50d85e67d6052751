package namespace

import (
	"cmp"

	"lockfs/raftstore/advisory"
	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// takeLock is flock(2), and fcntl(2) with F_SETLK or F_SETLKW.
func (ns *Namespace) takeLock(cmd *storepb.Command, op *storepb.TakeLock) *storepb.Result {
	by := budget.User{Host: ns.sessions.hostOf(ids.Session(cmd.GetSession())), UID: cmp.Or(cmd.GetCaller().GetBudgetUid(), cmd.GetCaller().GetUid())}
	want, valid := advisory.Want(ids.Session(cmd.GetSession()), ids.Sequence(cmd.GetSeq()), by, op)
	in, found := ns.tree.inode(ids.Inode(op.GetIno()))
	switch {
	case !valid || cmd.GetSession() == 0:
		return fail(storepb.Code_INVALID)
	case op.GetSession() != cmd.GetSession():
		return fail(storepb.Code_SESSION_LOST)
	case (!found || ns.tree.isUndone(in.ino)) && op.GetType() != storepb.LockType_UNLOCK:
		return fail(storepb.Code_STALE)
	case found && in.isDir():
		return fail(storepb.Code_IS_DIRECTORY)
	}
	counts := false
	if op.GetType() != storepb.LockType_UNLOCK {
		var asked []*process
		if counts, asked = ns.isLockOfHolder(cmd.GetCaller(), op, in); asked != nil {
			return needLineage(asked)
		}
	}
	if op.GetType() != storepb.LockType_UNLOCK || ns.locks.Splits(want) {
		if exceeded := ns.roomForLock(by, ids.Inode(op.GetIno())); exceeded != nil {
			return &storepb.Result{Code: storepb.Code_NO_LOCKS, Message: exceeded.Error()}
		}
	}
	code, inTheWay := ns.locks.Take(want)
	result := &storepb.Result{Code: code}
	if code == storepb.Code_NO_LOCKS {
		limit := ns.budgets.ofRanges()
		result.Message = limit.Exceeded(budget.User{UID: by.UID}.String()).Error()
	}
	if inTheWay != nil {
		result.AdvisoryLocks = ns.sessions.withHosts(inTheWay)
	}
	if op.GetType() == storepb.LockType_UNLOCK || code != storepb.Code_OK && code != storepb.Code_WAITING {
		return result // a refused request changes nothing
	}
	if counts {
		ns.noteKernelLock(in)
	} else {
		ns.noteOtherLock(in)
	}
	return result
}

func needLineage(asked []*process) *storepb.Result {
	result := fail(storepb.Code_NEED_LINEAGE)
	for _, p := range asked {
		result.Processes = append(result.Processes, p.message())
	}
	return result
}

// dropLocks is a close(2): the owners lose their locks and requests of the file. If programs may continue
// without knowing, the locks stay reserved for the lock delay.
func (ns *Namespace) dropLocks(session ids.Session, op *storepb.DropLocks) *storepb.Result {
	delay := int64(0)
	if s, found := ns.sessions.byID.Get(session); found && op.GetLost() {
		delay = ns.sessions.delayAfter(s)
	}
	ns.locks.Drop(session, op, delay)
	return ok()
}
