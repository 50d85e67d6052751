package raftstore

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
	until      int64  // its session has ended: it stays until then; 0: it is held
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
	}
	return a.start < b.start
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
func (ns *Namespace) takeLock(cmd *storepb.Command, op *storepb.TakeLock) (*storepb.Result, *storepb.Undo) {
	want, valid := advisoryOf(cmd.GetSession(), cmd.GetSeq(), op)
	in, found := ns.inodes.Get(op.GetIno())
	switch {
	case !valid || cmd.GetSession() == 0:
		return fail(storepb.Code_INVALID), nil
	case op.GetSession() != cmd.GetSession():
		return fail(storepb.Code_SESSION_LOST), nil
	case !found:
		return fail(storepb.Code_STALE), nil
	case in.isDir():
		return fail(storepb.Code_IS_DIRECTORY), nil
	}
	want.since = ns.time
	undo := &storepb.Undo{Lock: &storepb.LockUndo{
		Ino: want.ino, Kind: want.kind, Owner: want.owner, Before: ns.advisoryMessages(ns.ownedBy(&want)),
	}}
	if op.GetType() == storepb.LockType_UNLOCK {
		ns.setRange(&want, false)
		ns.serveQueue(want.ino, want.kind)
		return ok(), undo
	}
	if ns.locksOf(want.session) >= MaxLocks {
		return fail(storepb.Code_NO_LOCKS), nil
	}
	return ns.grantOrQueue(&want, op), undo
}

func (ns *Namespace) grantOrQueue(want *advisory, op *storepb.TakeLock) *storepb.Result {
	again := ns.interruptedRequest(want)
	if want.kind == storepb.LockKind_FLOCK && again == nil {
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
	if ns.isDeadlock(request) {
		return fail(storepb.Code_DEADLOCK)
	}
	ns.putWaiter(request)
	return fail(storepb.Code_WAITING)
}

// dropToConvert gives up an flock that is to become one of the other type. Others may get theirs in between
// (flock(2)): two that hold it and both want it for themselves would otherwise wait for each other.
func (ns *Namespace) dropToConvert(want *advisory) {
	for _, own := range ns.ownedBy(want) {
		if own.exclusive != want.exclusive {
			ns.deleteAdvisory(own)
			ns.serveQueue(want.ino, want.kind)
		}
	}
}

// ownedBy lists what an owner holds of a file, in order.
func (ns *Namespace) ownedBy(owner *advisory) []*advisory {
	var own []*advisory
	from := &advisory{ino: owner.ino, kind: owner.kind, session: owner.session, owner: owner.owner}
	ns.advisories.Ascend(from, func(a *advisory) bool {
		if a.ino != from.ino || a.kind != from.kind || a.session != from.session || a.owner != from.owner {
			return false
		}
		if a.until == 0 {
			own = append(own, a)
		}
		return true
	})
	return own
}

// heldAgainst answers a lock that is in the way of another one.
func (ns *Namespace) heldAgainst(want *advisory) (inTheWay *advisory) {
	ns.advisories.Ascend(&advisory{ino: want.ino, kind: want.kind}, func(a *advisory) bool {
		if a.ino != want.ino || a.kind != want.kind {
			return false
		}
		if a.excludes(want) {
			inTheWay = a
		}
		return inTheWay == nil
	})
	return inTheWay
}

// setRange makes a range an owner's, or nobody's. What the owner had of it before is replaced, and pieces of
// one type that touch become one.
func (ns *Namespace) setRange(want *advisory, held bool) {
	var pieces []*advisory
	for _, own := range ns.ownedBy(want) {
		ns.deleteAdvisory(own)
		pieces = append(pieces, own.without(want)...)
	}
	if held {
		pieces = joined(pieces, want)
	}
	for _, piece := range pieces {
		ns.putAdvisory(piece)
	}
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

// joined adds a lock to pieces that it does not overlap.
func joined(pieces []*advisory, added *advisory) []*advisory {
	whole := *added
	var apart []*advisory
	for _, piece := range pieces {
		switch {
		case piece.exclusive != whole.exclusive:
			apart = append(apart, piece)
		case piece.end+1 == whole.start:
			whole.start = piece.start
		case whole.end+1 == piece.start:
			whole.end = piece.end
		default:
			apart = append(apart, piece)
		}
	}
	return append(apart, &whole)
}

func (ns *Namespace) putAdvisory(a *advisory) {
	if _, replaced := ns.advisories.Set(a); !replaced {
		ns.countLocks(a.session, +1)
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

// dropLocks is a close(2): what its owners have and want of the file goes.
func (ns *Namespace) dropLocks(session uint64, op *storepb.DropLocks) *storepb.Result {
	for _, owner := range op.GetOwners() {
		gone := &advisory{ino: op.GetIno(), kind: op.GetKind(), session: session, owner: owner}
		for _, own := range ns.ownedBy(gone) {
			ns.deleteAdvisory(own)
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
	var own []*advisory
	ns.advisories.Scan(func(a *advisory) bool {
		if a.session == session && a.until == 0 {
			own = append(own, a)
		}
		return true
	})
	var requests []*waiter
	ns.waiters.Scan(func(w *waiter) bool {
		if w.session == session {
			requests = append(requests, w)
		}
		return true
	})
	for _, request := range requests {
		ns.deleteWaiter(request)
	}
	for _, a := range own {
		ns.deleteAdvisory(a)
		if delay > 0 {
			stays := *a
			stays.until = ns.time + delay
			ns.putAdvisory(&stays)
		}
	}
	for _, a := range own {
		ns.serveQueue(a.ino, a.kind)
	}
	for _, request := range requests {
		ns.serveQueue(request.ino, request.kind)
	}
}

// expireAdvisories runs with every command: locks of sessions that ended go, and requests that were
// interrupted and did not come again.
func (ns *Namespace) expireAdvisories() {
	for {
		a, found := ns.delayed.Min()
		if !found || a.until > ns.time {
			break
		}
		ns.deleteAdvisory(a)
		ns.serveQueue(a.ino, a.kind)
	}
	for {
		w, found := ns.interrupted.Min()
		if !found || ns.time-w.interrupted < int64(interruptPatience) {
			return
		}
		ns.deleteWaiter(w)
		ns.serveQueue(w.ino, w.kind)
	}
}

// takeBackLock gives an owner back what it had before a command whose outcome nobody was told. What others
// got meanwhile stays theirs, and so does what the owner itself got.
func (ns *Namespace) takeBackLock(session, seq uint64, undo *storepb.LockUndo) {
	if request, waiting := ns.request(session, seq); waiting {
		ns.deleteWaiter(request)
	}
	owner := &advisory{ino: undo.GetIno(), kind: undo.GetKind(), session: session, owner: undo.GetOwner()}
	for _, own := range ns.ownedBy(owner) {
		if own.seq == seq {
			ns.deleteAdvisory(own)
		}
	}
	for _, message := range undo.GetBefore() {
		before := advisoryFrom(message)
		inTheWay := ns.heldAgainst(before) != nil
		for _, own := range ns.ownedBy(owner) {
			inTheWay = inTheWay || own.overlaps(before)
		}
		if !inTheWay {
			ns.putAdvisory(before)
		}
	}
	ns.serveQueue(undo.GetIno(), undo.GetKind())
}
