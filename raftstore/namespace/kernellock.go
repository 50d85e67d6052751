package namespace

import (
	"time"

	"lockfs/raftstore/advisory"
	"lockfs/raftstore/fault"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// DefaultLockDelay can be changed by a SetLimits command.
const DefaultLockDelay = 15 * time.Second

// takeLock is flock(2), and fcntl(2) with F_SETLK or F_SETLKW.
func (ns *Namespace) takeLock(cmd *storepb.Command, op *storepb.TakeLock) *storepb.Result {
	want, valid := advisory.Want(ids.Session(cmd.GetSession()), ids.Sequence(cmd.GetSeq()), op)
	in, found := ns.inodes.Get(op.GetIno())
	switch {
	case !valid || cmd.GetSession() == 0:
		return fail(storepb.Code_INVALID)
	case op.GetSession() != cmd.GetSession():
		return fail(storepb.Code_SESSION_LOST)
	case (!found || ns.isTakenBack(in.ino)) && op.GetType() != storepb.LockType_UNLOCK:
		return fail(storepb.Code_STALE)
	case found && in.isDir():
		return fail(storepb.Code_IS_DIRECTORY)
	}
	code, inTheWay := ns.locks.Take(want)
	result := &storepb.Result{Code: code}
	if inTheWay != nil {
		result.AdvisoryLocks = ns.withHosts(inTheWay)
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
	if s, found := ns.sessions.Get(session); found && op.GetLost() {
		delay = ns.delayAfter(s)
	}
	ns.locks.Drop(ids.Session(session), op, delay)
	return ok()
}

// noteKernelLock is called when somebody has, or waits for, an advisory lock of a file: from then on that lock
// guards it alone, and its content is data. Who waits for it waits for this inode, so lockfs never removes it.
func (ns *Namespace) noteKernelLock(ino uint64) {
	in, found := ns.inodes.Get(ino)
	if !found || in.kernelLocked || in.unlisted || fault.GuardLocked {
		return
	}
	locked := *in
	locked.kernelLocked, locked.gone = true, nil
	ns.putInode(&locked)
	for _, e := range ns.namesOf(ino) {
		data := *e
		data.stale = nil
		ns.putJudged(&data, &locked)
	}
}

// hasAdvisories tells whether somebody has an advisory lock of a file now, or waits for one.
func (ns *Namespace) hasAdvisories(in *inode) bool {
	return in.kernelLocked && ns.locks.Locked(ids.Inode(in.ino))
}

// wasLockedAs tells whether somebody has locked an inode, or asked for that, since it got the name that is its last change. Where
// it came to be with that name, locks that were released count too.
func (ns *Namespace) wasLockedAs(e *entry, in *inode) (locked bool) {
	return in.kernelLocked && in.version == e.made || ns.locks.LockedSince(ids.Inode(in.ino), e.acquired)
}

// testLock is F_GETLK.
func (ns *Namespace) testLock(q *storepb.TestLock) *storepb.Result {
	want, valid := advisory.Want(ids.Session(q.GetSession()), 0, q.GetLock())
	if !valid {
		return fail(storepb.Code_INVALID)
	}
	result := ok()
	if inTheWay := ns.locks.Test(want); inTheWay != nil {
		result.AdvisoryLocks = ns.withHosts(inTheWay)
	}
	return result
}

func (ns *Namespace) listAdvisories(q *storepb.ListAdvisoryLocks) *storepb.Result {
	if q.GetViewer() == nil {
		return nobody()
	}
	view := ns.viewOf(q.GetViewer())
	return &storepb.Result{AdvisoryLocks: ns.advisoriesOf(q.GetIno(), advisoryPage, func(of ids.Inode) bool {
		return (q.GetIno() != 0 || !ns.isUnlisted(uint64(of))) && view.advisories(uint64(of))
	})}
}

func anyFile(ids.Inode) bool { return true }

// advisoriesOf answers the locks and requests of a file, or of all (0), as far as they are wanted, and so many at most.
func (ns *Namespace) advisoriesOf(ino uint64, most int, wanted func(ids.Inode) bool) []*storepb.AdvisoryLock {
	return ns.withHosts(ns.locks.List(ids.Inode(ino), most, wanted)...)
}

func (ns *Namespace) isUnlisted(ino uint64) bool {
	in, found := ns.inodes.Get(ino)
	return found && in.unlisted
}

// withHosts tells the hosts too, which are those of the sessions.
func (ns *Namespace) withHosts(locks ...*storepb.AdvisoryLock) []*storepb.AdvisoryLock {
	for _, lock := range locks {
		if s, found := ns.sessions.Get(lock.GetSession()); found {
			lock.Host = s.host
		}
	}
	return locks
}

// Ended answers the requests that the last command made locks, or changed otherwise.
func (ns *Namespace) Ended() []advisory.Request { return ns.locks.Ended() }

// AwaitLock tells what has become of a request. One that is not there any more has become a lock if its
// owner has what it asked for.
func (ns *Namespace) AwaitLock(q *storepb.AwaitLock) *storepb.Result { return fail(ns.locks.Await(q)) }
