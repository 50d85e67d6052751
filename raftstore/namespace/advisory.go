package namespace

import (
	"math"
	"time"

	"lockfs/raftstore/storepb"
)

const (
	// DefaultLockDelay can be changed by a SetLimits command.
	DefaultLockDelay = 15 * time.Second
	// MaxLocks is how many advisory locks and requests a session may have.
	MaxLocks = 100_000
	// lastByte is the end of a lock that reaches to the end of a file, whatever its size (OFFSET_MAX).
	lastByte = math.MaxInt64
)

// advisory is a lock of flock(2) or fcntl(2) that is held. It is never modified once it is in a tree.
type advisory struct {
	ino        uint64
	kind       storepb.LockKind
	session    uint64
	owner      uint64 // within the session
	start, end uint64 // both inclusive
	exclusive  bool
	pid        uint32
	since      int64
	seq        uint64 // of the command in the session that it comes from
	until      int64  // its owner has lost it: it stays until then; 0: it is held
}

func lessAdvisory(a, b *advisory) bool {
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
		return a.until < b.until // a successor may give its owners the same numbers
	case a.start != b.start:
		return a.start < b.start
	}
	return a.seq < b.seq
}

func lessDelayed(a, b *advisory) bool {
	if a.until != b.until {
		return a.until < b.until
	}
	return lessAdvisory(a, b)
}

// advisoryOf is a lock as a command asks for it. ok is false for what no kernel asks for.
func advisoryOf(session, seq uint64, op *storepb.TakeLock) (a advisory, ok bool) {
	a = advisory{
		ino: op.GetIno(), kind: op.GetKind(), session: session, owner: op.GetOwner(), start: op.GetStart(), end: op.GetEnd(),
		exclusive: op.GetType() == storepb.LockType_EXCLUSIVE, pid: op.GetPid(), seq: seq,
	}
	switch a.kind {
	case storepb.LockKind_FLOCK:
		a.start, a.end = 0, lastByte
	case storepb.LockKind_RECORD:
		if a.end > lastByte {
			a.end = lastByte
		}
	default:
		return a, false
	}
	_, knownType := storepb.LockType_name[int32(op.GetType())]
	return a, knownType && a.start <= a.end
}

func (a *advisory) sameOwner(b *advisory) bool {
	return a.session == b.session && a.owner == b.owner && a.until == 0 && b.until == 0
}

func (a *advisory) overlaps(b *advisory) bool {
	return a.ino == b.ino && a.kind == b.kind && a.start <= b.end && b.start <= a.end
}

// excludes tells whether two locks cannot both be held.
func (a *advisory) excludes(b *advisory) bool {
	return a.overlaps(b) && (a.exclusive || b.exclusive) && !a.sameOwner(b)
}

// takeLock is flock(2), and fcntl(2) with F_SETLK or F_SETLKW.
func (ns *Namespace) takeLock(cmd *storepb.Command, op *storepb.TakeLock) *storepb.Result {
	want, valid := advisoryOf(cmd.GetSession(), cmd.GetSeq(), op)
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
	want.since = ns.time
	if op.GetType() == storepb.LockType_UNLOCK {
		return ns.release(&want)
	}
	if ns.locksOf(want.session) >= MaxLocks {
		return fail(storepb.Code_NO_LOCKS)
	}
	return ns.grantOrQueue(&want, op)
}

func (ns *Namespace) release(want *advisory) *storepb.Result {
	if ns.locksOf(want.session) >= MaxLocks && ns.splits(want) {
		return fail(storepb.Code_NO_LOCKS)
	}
	ns.setRange(want, false)
	ns.serveQueue(want.ino, want.kind)
	return ok()
}

// splits tells whether a range is amid a lock of its owner.
func (ns *Namespace) splits(want *advisory) bool {
	own := ns.ownedIn(want)
	return len(own) == 1 && own[0].start < want.start && own[0].end > want.end
}

func (ns *Namespace) grantOrQueue(want *advisory, op *storepb.TakeLock) *storepb.Result {
	again := ns.interruptedRequest(want)
	if want.kind == storepb.LockKind_FLOCK {
		ns.dropToConvert(want)
	}
	request := &waiter{advisory: *want, position: ns.index, byProcess: op.GetByProcess()}
	if again != nil {
		ns.deleteWaiter(again)
		request.position, request.since = again.position, again.since
	}
	inTheWay := ns.heldAgainst(want)
	if inTheWay == nil && (!op.GetWait() || ns.queuedAgainst(request) == nil) {
		ns.setRange(want, true)
		ns.serveQueue(want.ino, want.kind) // less may be locked now than before
		return ok()
	}
	if !op.GetWait() {
		return &storepb.Result{
			Code: storepb.Code_WOULD_BLOCK, AdvisoryLocks: ns.advisoryMessages([]*advisory{inTheWay}),
		}
	}
	ns.putWaiter(request)
	if ns.isDeadlock(request) {
		ns.deleteWaiter(request)
		return fail(storepb.Code_DEADLOCK)
	}
	return fail(storepb.Code_WAITING)
}

// dropToConvert gives up an flock that is to become one of the other type. Others may get theirs in between
// (flock(2)): two that hold it and both want it for themselves would otherwise wait for each other.
func (ns *Namespace) dropToConvert(want *advisory) {
	own := ns.ownedBy(want)
	if len(own) == 0 || own[0].exclusive == want.exclusive {
		return
	}
	ns.deleteAdvisory(own[0])
	ns.serveQueue(want.ino, want.kind)
}

// ownedBy lists what an owner holds of a file, in order.
func (ns *Namespace) ownedBy(owner *advisory) []*advisory {
	whole := *owner
	whole.start, whole.end = 0, lastByte
	return ns.ownedIn(&whole)
}

// ownedIn lists what an owner holds of a range, in order.
func (ns *Namespace) ownedIn(want *advisory) []*advisory {
	var own []*advisory
	if before := ns.ownedBefore(want); before != nil && before.end >= want.start {
		own = append(own, before)
	}
	from := &advisory{ino: want.ino, kind: want.kind, session: want.session, owner: want.owner, start: want.start}
	ns.advisories.Ascend(from, func(a *advisory) bool {
		if !a.sameOwner(from) || !a.overlaps(want) {
			return false
		}
		own = append(own, a)
		return true
	})
	return own
}

// ownedBefore answers the last lock of an owner that begins before a range.
func (ns *Namespace) ownedBefore(want *advisory) (before *advisory) {
	from := &advisory{ino: want.ino, kind: want.kind, session: want.session, owner: want.owner, start: want.start}
	ns.advisories.Descend(from, func(a *advisory) bool {
		if a.ino == from.ino && a.kind == from.kind && a.sameOwner(from) {
			before = a
		}
		return false
	})
	return before
}

// heldAgainst answers a lock that is in the way of another one.
func (ns *Namespace) heldAgainst(want *advisory) (inTheWay *advisory) {
	ns.eachHeld(want.ino, want.kind, func(a *advisory) bool {
		if a.excludes(want) {
			inTheWay = a
		}
		return inTheWay == nil
	})
	return inTheWay
}

// wasLockedAs tells whether somebody has locked an inode, or asked for that, since it got the name that is its last change. Where
// it came to be with that name, locks that were released count too.
func (ns *Namespace) wasLockedAs(e *entry, in *inode) (locked bool) {
	if in.kernelLocked && in.version == e.made {
		return true
	}
	since := func(a *advisory) bool {
		locked = locked || a.since >= e.acquired
		return !locked
	}
	for _, kind := range []storepb.LockKind{storepb.LockKind_FLOCK, storepb.LockKind_RECORD} {
		ns.eachHeld(in.ino, kind, since)
		ns.queue(in.ino, kind, func(w *waiter) bool { return since(&w.advisory) })
	}
	return locked
}

func (ns *Namespace) eachHeld(ino uint64, kind storepb.LockKind, visit func(*advisory) bool) {
	ns.advisories.Ascend(&advisory{ino: ino, kind: kind}, func(a *advisory) bool {
		return a.ino == ino && a.kind == kind && visit(a)
	})
}

// setRange makes a range an owner's, or nobody's. Pieces of one type that touch become one.
func (ns *Namespace) setRange(want *advisory, held bool) {
	for _, a := range ns.ownedIn(want) {
		ns.deleteAdvisory(a)
		for _, piece := range a.without(want) {
			ns.putAdvisory(piece)
		}
	}
	if !held {
		return
	}
	whole := *want
	for next := ns.toJoin(&whole); next != nil; next = ns.toJoin(&whole) {
		ns.deleteAdvisory(next)
		whole.start, whole.end = min(whole.start, next.start), max(whole.end, next.end)
	}
	ns.putAdvisory(&whole)
}

// toJoin answers a lock that touches another one of its owner and type.
func (ns *Namespace) toJoin(a *advisory) *advisory {
	if before := ns.ownedBefore(a); before != nil && before.end+1 == a.start && before.exclusive == a.exclusive {
		return before
	}
	if a.end == lastByte {
		return nil
	}
	behind := *a
	behind.start, behind.end = a.end+1, a.end+1
	if after := ns.ownedIn(&behind); len(after) > 0 && after[0].exclusive == a.exclusive {
		return after[0]
	}
	return nil
}

// without answers what is left of a lock beside a range.
func (a *advisory) without(cut *advisory) []*advisory {
	if !a.overlaps(cut) {
		return []*advisory{a}
	}
	var left []*advisory
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

func (ns *Namespace) putAdvisory(a *advisory) {
	if _, replaced := ns.advisories.Set(a); !replaced {
		ns.countLocks(a.session, +1)
		ns.noteKernelLock(a.ino)
	}
	if a.until != 0 {
		ns.delayed.Set(a)
	}
}

func (ns *Namespace) deleteAdvisory(a *advisory) {
	if _, found := ns.advisories.Delete(a); found {
		ns.countLocks(a.session, -1)
	}
	ns.delayed.Delete(a)
}

func (ns *Namespace) countLocks(session uint64, by int) {
	count := ns.locksOf(session) + by
	if count == 0 {
		ns.lockCounts.Delete(session)
	} else {
		ns.lockCounts.Set(session, count)
	}
}

func (ns *Namespace) locksOf(session uint64) int {
	count, _ := ns.lockCounts.Get(session)
	return count
}

// dropLocks is a close(2): what its owners have and want of the file goes. Where somebody may go on without knowing, nobody
// gets the locks before the lock delay is over.
func (ns *Namespace) dropLocks(session uint64, op *storepb.DropLocks) *storepb.Result {
	delay := int64(0)
	if s, found := ns.sessions.Get(session); found && op.GetLost() {
		delay = ns.delayAfter(s)
	}
	for _, owner := range op.GetOwners() {
		gone := &advisory{ino: op.GetIno(), kind: op.GetKind(), session: session, owner: owner, end: lastByte}
		for _, own := range ns.ownedBy(gone) {
			ns.dropAdvisory(own, delay)
		}
		for _, request := range ns.requestsOf(gone) {
			ns.deleteWaiter(request)
		}
	}
	ns.serveQueue(op.GetIno(), op.GetKind())
	return ok()
}

// dropAllLocks ends what a session has and wants. Where its programs may go on without knowing, nobody gets
// the locks before the lock delay is over.
func (ns *Namespace) dropAllLocks(session uint64, delay int64) {
	if ns.locksOf(session) == 0 {
		return
	}
	var released files
	for _, request := range ns.requestsOfSession(session) {
		ns.deleteWaiter(request)
		released.add(&request.advisory)
	}
	var own []*advisory
	ns.advisories.Scan(func(a *advisory) bool {
		if a.session == session && a.until == 0 {
			own = append(own, a)
		}
		return true
	})
	for _, a := range own {
		ns.dropAdvisory(a, delay)
		released.add(a)
	}
	ns.serveQueues(&released)
}

// dropAdvisory takes a lock from its owner.
func (ns *Namespace) dropAdvisory(a *advisory, delay int64) {
	ns.deleteAdvisory(a)
	if delay > 0 {
		stays := *a
		stays.until = ns.time + delay
		ns.putAdvisory(&stays)
	}
}

// expireAdvisories runs with every command: locks that their owners have lost go, and requests that were
// interrupted and did not come again.
func (ns *Namespace) expireAdvisories() {
	var released files
	for {
		a, found := ns.delayed.Min()
		if !found || a.until > ns.time {
			break
		}
		ns.deleteAdvisory(a)
		released.add(a)
	}
	for {
		w, found := ns.interrupted.Min()
		if !found || ns.time-w.interrupted < int64(interruptPatience) {
			break
		}
		ns.deleteWaiter(w)
		released.add(&w.advisory)
	}
	ns.serveQueues(&released)
}
