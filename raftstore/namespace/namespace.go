package namespace

import (
	"syscall"

	"lockfs/raftstore/fault"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Namespace is the replicated state machine: it does commands. It is not safe for concurrent use.
//
// Beneath it lie, each knowing only those below: a keeper changes names, with all that follows of it; a warden refuses what must not be
// done to a lock; an announcer tells of what happens; a judge says what is a lock, whose, and whether it is stale; and the tables
// hold the state.
type Namespace struct{ keeper }

// New makes an empty tree: a root directory that every user may write to.
func New() *Namespace {
	ns := empty()
	ns.tree.putInode(&inode{ino: RootIno, mode: rootMode, nlink: 2, parent: RootIno})
	return ns
}

func empty() *Namespace {
	ns := new(Namespace)
	ns.tables = emptyTables()
	return ns
}

// rootMode lets every user make locks and only their owners remove them, as in /run/lock.
const rootMode = syscall.S_IFDIR | 0o1777

// Apply does one command, the log entry with the given index, and answers its result. Commands come in
// the order of their indexes. The result belongs to the state: callers do not change it.
func (ns *Namespace) Apply(index uint64, cmd *storepb.Command) *storepb.Result {
	ns.index, ns.removed = index, nil
	ns.time = max(ns.time, fault.ApplyTime(cmd.GetTime()))
	ns.locks.Begin(ids.Index(ns.index), ns.time)
	ns.bearRoot()
	ns.tree.dropExpiredOrphans(ns.time)
	ns.sessions.dropExpiredSessions(ns.time)
	ns.expireLocks()
	ns.locks.Expire()
	ns.announcePending()
	return ns.applyOnce(cmd)
}

// bearRoot gives the root directory the time of the first command that has one.
func (k *keeper) bearRoot() {
	root, found := k.tree.inode(RootIno)
	if !found || root.btime != 0 {
		return
	}
	born := *root
	born.atime, born.mtime, born.ctime, born.btime = k.time, k.time, k.time, k.time
	k.tree.putInode(&born)
}

// applyOp does the operation of a command. undo is how a Cancel takes it back, for what created a name exclusively.
func (ns *Namespace) applyOp(cmd *storepb.Command) (result *storepb.Result, undo *storepb.Undo) {
	if len(cmd.GetCaller().GetHost()) > MaxName {
		return fail(storepb.Code_INVALID), nil
	}
	switch op := cmd.GetOp().GetOp().(type) {
	case *storepb.Op_Create:
		return ns.create(cmd.GetCaller(), op.Create)
	case *storepb.Op_Link:
		return ns.link(cmd.GetCaller(), op.Link)
	case *storepb.Op_Rename:
		return ns.rename(cmd, op.Rename)
	case *storepb.Op_Unlink:
		return ns.unlink(cmd, op.Unlink), nil
	case *storepb.Op_SetAttr:
		return ns.setAttr(op.SetAttr), nil
	case *storepb.Op_SetContent:
		return ns.setContent(cmd, op.SetContent), nil
	case *storepb.Op_SetXattr:
		return ns.setXattr(cmd.GetCaller(), op.SetXattr), nil
	case *storepb.Op_RemoveXattr:
		return ns.removeXattr(op.RemoveXattr), nil
	case *storepb.Op_Pin:
		return ns.tree.setPinned(cmd.GetSession(), op.Pin.GetIno(), true), nil
	case *storepb.Op_Unpin:
		return ns.tree.setPinned(cmd.GetSession(), op.Unpin.GetIno(), false), nil
	case *storepb.Op_EndSession:
		return ns.endSession(op.EndSession), nil
	case *storepb.Op_SetMember:
		return ns.setMember(op.SetMember.GetMember()), nil
	case *storepb.Op_RemoveMember:
		ns.members.Delete(op.RemoveMember.GetId())
		return ok(), nil
	case *storepb.Op_SetLimits:
		return ns.setLimits(op.SetLimits), nil
	case *storepb.Op_ProcessGone:
		return ns.processGone(cmd.GetSession(), op.ProcessGone), nil
	case *storepb.Op_SetRule:
		return ns.setRule(op.SetRule.GetRule()), nil
	case *storepb.Op_DeleteRule:
		return ns.deleteRule(op.DeleteRule.GetPattern()), nil
	case *storepb.Op_ForgetHost:
		return ns.forgetHost(cmd.GetCaller(), op.ForgetHost.GetName()), nil
	case *storepb.Op_TakeLock:
		return ns.takeLock(cmd, op.TakeLock), nil
	case *storepb.Op_DropLocks:
		return ns.dropLocks(cmd.GetSession(), op.DropLocks), nil
	case *storepb.Op_InterruptLock:
		return fail(ns.locks.Interrupt(ids.Session(cmd.GetSession()), op.InterruptLock)), nil
	case *storepb.Op_Tick:
		return ns.tick(), nil
	default:
		return fail(storepb.Code_UNKNOWN_COMMAND), nil
	}
}
