package namespace

import (
	"time"

	"lockfs/raftstore/advisory"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// DefaultLockDelay can be changed by a SetLimits command.
const DefaultLockDelay = 15 * time.Second

// takeLock is flock(2), and fcntl(2) with F_SETLK or F_SETLKW.
func (ns *Namespace) takeLock(cmd *storepb.Command, op *storepb.TakeLock) *storepb.Result {
	want, valid := advisory.Want(ids.Session(cmd.GetSession()), ids.Sequence(cmd.GetSeq()), op)
	in, found := ns.tree.inode(op.GetIno())
	switch {
	case !valid || cmd.GetSession() == 0:
		return fail(storepb.Code_INVALID)
	case op.GetSession() != cmd.GetSession():
		return fail(storepb.Code_SESSION_LOST)
	case (!found || ns.tree.isTakenBack(in.ino)) && op.GetType() != storepb.LockType_UNLOCK:
		return fail(storepb.Code_STALE)
	case found && in.isDir():
		return fail(storepb.Code_IS_DIRECTORY)
	}
	code, inTheWay := ns.locks.Take(want)
	result := &storepb.Result{Code: code}
	if inTheWay != nil {
		result.AdvisoryLocks = ns.sessions.withHosts(inTheWay)
	}
	if op.GetType() != storepb.LockType_UNLOCK && code != storepb.Code_NO_LOCKS {
		ns.noteKernelLock(op.GetIno())
	}
	return result
}

// dropLocks is a close(2): what its owners have and want of the file goes. Where somebody may go on without knowing, nobody
// gets the locks before the lock delay is over.
func (ns *Namespace) dropLocks(session uint64, op *storepb.DropLocks) *storepb.Result {
	delay := int64(0)
	if s, found := ns.sessions.byID.Get(session); found && op.GetLost() {
		delay = ns.sessions.delayAfter(s)
	}
	ns.locks.Drop(ids.Session(session), op, delay)
	return ok()
}

// testLock is F_GETLK.
func (r reader) testLock(q *storepb.TestLock) *storepb.Result {
	want, valid := advisory.Want(ids.Session(q.GetSession()), 0, q.GetLock())
	if !valid {
		return fail(storepb.Code_INVALID)
	}
	result := ok()
	if inTheWay := r.locks.Test(want); inTheWay != nil {
		result.AdvisoryLocks = r.sessions.withHosts(inTheWay)
	}
	return result
}

func (r reader) listAdvisories(q *storepb.ListAdvisoryLocks) *storepb.Result {
	if q.GetViewer() == nil {
		return nobody()
	}
	view := r.viewOf(q.GetViewer())
	return &storepb.Result{AdvisoryLocks: r.advisoriesOf(q.GetIno(), advisoryPage, func(of ids.Inode) bool {
		return (q.GetIno() != 0 || !r.tree.isUnlisted(uint64(of))) && view.advisories(uint64(of))
	})}
}

func anyFile(ids.Inode) bool { return true }

// advisoriesOf answers the locks and requests of a file, or of all (0), as far as they are wanted, and so many at most.
func (r reader) advisoriesOf(ino uint64, most int, wanted func(ids.Inode) bool) []*storepb.AdvisoryLock {
	return r.sessions.withHosts(r.locks.List(ids.Inode(ino), most, wanted)...)
}
