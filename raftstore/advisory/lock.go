package advisory

import (
	"math"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// lastByte is the end of a lock up to the end of a file, whatever its size (OFFSET_MAX).
const lastByte = math.MaxInt64

// kinds are the independent kinds of locks.
var kinds = []storepb.LockKind{storepb.LockKind_FLOCK, storepb.LockKind_RECORD}

// lock is a held lock of flock(2) or fcntl(2). It is never modified once it is in a tree.
type lock struct {
	ino        ids.Inode
	kind       storepb.LockKind
	session    ids.Session
	owner      ids.Owner
	start, end uint64 // both inclusive
	exclusive  bool
	pid        uint32
	since      int64
	seq        ids.Sequence // of the requesting command in the session
	user       budget.User  // the payer
	until      int64        // its owner lost it, and it stays until then; 0: it is held
}

func lessLock(a, b *lock) bool {
	switch {
	case a.ino != b.ino:
		return a.ino < b.ino
	case a.kind != b.kind:
		return a.kind < b.kind
	case a.session != b.session:
		return a.session < b.session
	case a.owner != b.owner:
		return a.owner < b.owner
	case a.until != b.until:
		return a.until < b.until // a new process of the session may use the same owner numbers
	case a.start != b.start:
		return a.start < b.start
	}
	return a.seq < b.seq
}

func lessDelayed(a, b *lock) bool {
	if a.until != b.until {
		return a.until < b.until
	}
	return lessLock(a, b)
}

// Wanted is a parsed request.
type Wanted struct {
	lock
	unlock    bool
	wait      bool
	byProcess bool // the owner is a process, not an open file description
}

// Want parses the request of a session's command, on behalf of a user. ok is false for a lock unknown to
// kernels.
func Want(session ids.Session, seq ids.Sequence, by budget.User, op *storepb.TakeLock) (want *Wanted, ok bool) {
	want = &Wanted{unlock: op.GetType() == storepb.LockType_UNLOCK, wait: op.GetWait(), byProcess: op.GetByProcess()}
	want.lock = lock{
		ino: ids.Inode(op.GetIno()), kind: op.GetKind(), session: session, owner: ids.Owner(op.GetOwner()),
		start: op.GetStart(), end: op.GetEnd(), exclusive: op.GetType() == storepb.LockType_EXCLUSIVE, pid: op.GetPid(), seq: seq, user: by,
	}
	switch want.kind {
	case storepb.LockKind_FLOCK:
		want.start, want.end = 0, lastByte
	case storepb.LockKind_RECORD:
		want.end = min(want.end, lastByte)
	default:
		return want, false
	}
	_, knownType := storepb.LockType_name[int32(op.GetType())]
	return want, knownType && want.start <= want.end
}

// lockOwner is a process or an open file description, of one session.
type lockOwner struct {
	session ids.Session
	owner   ids.Owner
}

// Owner of lost locks during the lock delay: it differs from the owner of every request.
var nobody lockOwner

func ownerOf(a *lock) lockOwner {
	if a.until != 0 {
		return nobody
	}
	return lockOwner{a.session, a.owner}
}

// file identifies the locks of one kind of an inode. Kinds are independent.
type file struct {
	ino  ids.Inode
	kind storepb.LockKind
}

func fileOf(a *lock) file { return file{a.ino, a.kind} }

func lessBySession(a, b *lock) bool {
	if a.session != b.session {
		return a.session < b.session
	}
	if a.owner != b.owner {
		return a.owner < b.owner
	}
	return lessLock(a, b)
}

func (a *lock) sameOwner(b *lock) bool {
	return a.session == b.session && a.owner == b.owner && a.until == 0 && b.until == 0
}

func (a *lock) overlaps(b *lock) bool {
	return a.ino == b.ino && a.kind == b.kind && a.start <= b.end && b.start <= a.end
}

func (a *lock) excludes(b *lock) bool {
	return a.overlaps(b) && (a.exclusive || b.exclusive) && !a.sameOwner(b)
}

func (a *lock) without(cut *lock) []*lock {
	if !a.overlaps(cut) {
		return []*lock{a}
	}
	var left []*lock
	if a.start < cut.start {
		piece := *a
		piece.end = cut.start - 1
		left = append(left, &piece)
	}
	if a.end > cut.end {
		piece := *a
		piece.start = cut.end + 1
		left = append(left, &piece)
	}
	return left
}
