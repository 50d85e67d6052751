package namespace

import (
	"time"

	"lockfs/raftstore/storepb"
)

// interruptPatience is how long a request keeps its place for a caller that was interrupted: a signal's
// handler runs, and the call is made again.
const interruptPatience = 2 * time.Second

// waiter is a request for an advisory lock in the queue of its file. It is never modified once it is in a
// tree.
//
// Who came first gets the lock first: a request waits for locks that exclude it, and for earlier requests
// that do, so that a stream of readers does not keep a writer out.
type waiter struct {
	advisory
	position    uint64 // index of the command that first asked
	byProcess   bool
	interrupted int64 // since when nobody waits; 0: somebody does
}

// lessWaiter orders by file and then by who came first. Two requests of one position are of a call that was
// made again, whose first one is gone.
func lessWaiter(a, b *waiter) bool {
	switch {
	case a.ino != b.ino:
		return a.ino < b.ino
	case a.kind != b.kind:
		return a.kind < b.kind
	}
	return a.position < b.position
}

func lessRequest(a, b *waiter) bool {
	if a.session != b.session {
		return a.session < b.session
	}
	return a.seq < b.seq
}

func lessInterrupted(a, b *waiter) bool {
	if a.interrupted != b.interrupted {
		return a.interrupted < b.interrupted
	}
	return lessRequest(a, b)
}

func (ns *Namespace) putWaiter(w *waiter) {
	ns.waiters.Set(w)
	ns.requests.Set(w)
	ns.countLocks(w.session, +1)
	ns.noteKernelLock(w.ino)
	if w.interrupted != 0 {
		ns.interrupted.Set(w)
	}
}

func (ns *Namespace) deleteWaiter(w *waiter) {
	ns.waiters.Delete(w)
	ns.requests.Delete(w)
	ns.countLocks(w.session, -1)
	ns.interrupted.Delete(w)
	ns.ended = append(ns.ended, Request{w.session, w.seq})
}

// request answers what waits for a command of a session.
func (ns *Namespace) request(session, seq uint64) (*waiter, bool) {
	return ns.requests.Get(&waiter{advisory: advisory{session: session, seq: seq}})
}

// queue visits the requests of a file in order.
func (ns *Namespace) queue(ino uint64, kind storepb.LockKind, visit func(*waiter) bool) {
	ns.waiters.Ascend(&waiter{advisory: advisory{ino: ino, kind: kind}}, func(w *waiter) bool {
		return w.ino == ino && w.kind == kind && visit(w)
	})
}

func (ns *Namespace) requestsOf(owner *advisory) []*waiter {
	var own []*waiter
	ns.queue(owner.ino, owner.kind, func(w *waiter) bool {
		if w.sameOwner(owner) {
			own = append(own, w)
		}
		return true
	})
	return own
}

// interruptedRequest answers the request that a call which is made again has in the queue.
func (ns *Namespace) interruptedRequest(want *advisory) *waiter {
	for _, w := range ns.requestsOf(want) {
		if w.interrupted != 0 && w.start == want.start && w.end == want.end && w.exclusive == want.exclusive {
			return w
		}
	}
	return nil
}

// requestsOfSession lists what a session waits for, in the order of its commands.
func (ns *Namespace) requestsOfSession(session uint64) []*waiter {
	var own []*waiter
	ns.requests.Ascend(&waiter{advisory: advisory{session: session}}, func(w *waiter) bool {
		if w.session == session {
			own = append(own, w)
		}
		return w.session == session
	})
	return own
}

// queuedAgainst answers an earlier request that a later one has to let pass: somebody waits for it, both
// cannot be held, and it is not itself stuck behind what the later one's owner has.
func (ns *Namespace) queuedAgainst(later *waiter) (inTheWay *waiter) {
	ns.eachNotStuck(later, func(w *waiter) bool {
		if w.excludes(&later.advisory) {
			inTheWay = w
		}
		return inTheWay == nil
	})
	return inTheWay
}

// eachNotStuck visits the earlier requests of others that wait neither for what a request's owner holds nor
// for one that does. To wait for those would be to wait for oneself.
func (ns *Namespace) eachNotStuck(later *waiter, visit func(*waiter) bool) {
	var stuck *standing
	ns.queue(later.ino, later.kind, func(w *waiter) bool {
		if w.position >= later.position {
			return false
		}
		if w.interrupted != 0 || w.sameOwner(&later.advisory) {
			return true
		}
		if stuck == nil {
			stuck = newStanding(ns.ownedBy(&later.advisory))
		}
		if stuck.against(&w.advisory) != nil {
			stuck.add(&w.advisory)
			return true
		}
		return visit(w)
	})
}

// standing is locks and requests that others have to respect.
type standing struct{ exclusive, shared []*advisory }

func newStanding(locks []*advisory) *standing {
	s := new(standing)
	for _, a := range locks {
		s.add(a)
	}
	return s
}

func (s *standing) add(a *advisory) {
	if a.exclusive {
		s.exclusive = append(s.exclusive, a)
	} else {
		s.shared = append(s.shared, a)
	}
}

// against answers one that excludes another lock.
func (s *standing) against(want *advisory) *advisory {
	for _, a := range s.exclusive {
		if a.excludes(want) {
			return a
		}
	}
	if want.exclusive {
		for _, a := range s.shared {
			if a.excludes(want) {
				return a
			}
		}
	}
	return nil
}

// serveQueue makes locks of the requests that can be.
func (ns *Namespace) serveQueue(ino uint64, kind storepb.LockKind) {
	for ns.serveInTurn(ino, kind) {
	}
}

// serveInTurn goes through the queue once. It answers true if it has to be done again from the start, because
// an owner got a lock in the place of another one: less may be in the way now.
func (ns *Namespace) serveInTurn(ino uint64, kind storepb.LockKind) (again bool) {
	var requests []*waiter
	ns.queue(ino, kind, func(w *waiter) bool {
		if w.interrupted == 0 {
			requests = append(requests, w)
		}
		return true
	})
	if len(requests) == 0 {
		return false
	}
	held, waiting := new(standing), new(standing)
	ns.eachHeld(ino, kind, func(a *advisory) bool {
		held.add(a)
		return true
	})
	for _, w := range requests {
		first := waiting.against(&w.advisory) == nil
		if held.against(&w.advisory) != nil || !first && ns.queuedAgainst(w) != nil {
			waiting.add(&w.advisory)
			continue
		}
		had := ns.ownedBy(&w.advisory)
		held.add(ns.grant(w))
		if len(had) > 0 {
			return true
		}
	}
	return false
}

func (ns *Namespace) grant(w *waiter) *advisory {
	ns.deleteWaiter(w)
	granted := w.advisory
	granted.since = ns.time
	ns.setRange(&granted, true)
	return &granted
}

// files are those of which something was released.
type files struct {
	seen map[file]bool
	list []file // in the order of the releases, which is the same on all nodes
}

type file struct {
	ino  uint64
	kind storepb.LockKind
}

func (f *files) add(a *advisory) {
	released := file{a.ino, a.kind}
	if f.seen[released] {
		return
	}
	if f.seen == nil {
		f.seen = make(map[file]bool)
	}
	f.seen[released] = true
	f.list = append(f.list, released)
}

func (ns *Namespace) serveQueues(released *files) {
	for _, f := range released.list {
		ns.serveQueue(f.ino, f.kind)
	}
}

// Request names a request for an advisory lock: a session's command.
type Request struct{ Session, Seq uint64 }

// Ended answers the requests that the last command made locks, or changed otherwise.
func (ns *Namespace) Ended() []Request { return ns.ended }

// AwaitLock tells what has become of a request. One that is not there any more has become a lock if its
// owner has what it asked for.
func (ns *Namespace) AwaitLock(q *storepb.AwaitLock) *storepb.Result {
	if w, waiting := ns.request(q.GetSession(), q.GetSeq()); waiting {
		if w.interrupted != 0 {
			return fail(storepb.Code_NOT_FOUND)
		}
		return fail(storepb.Code_WAITING)
	}
	return ns.whetherHeld(q.GetSession(), q.GetSeq(), &storepb.TakeLock{
		Ino: q.GetIno(), Kind: q.GetKind(), Owner: q.GetOwner(), Type: q.GetType(), Start: q.GetStart(), End: q.GetEnd(),
	})
}

// whetherHeld answers OK if an owner has what a command of it asked for, else NOT_FOUND. It may have got it
// by another command since: its threads may all ask for the same.
func (ns *Namespace) whetherHeld(session, seq uint64, op *storepb.TakeLock) *storepb.Result {
	want, valid := advisoryOf(session, seq, op)
	if !valid {
		return fail(storepb.Code_INVALID)
	}
	if op.GetType() != storepb.LockType_UNLOCK {
		if ns.holds(&want) {
			return ok()
		}
		return fail(storepb.Code_NOT_FOUND)
	}
	for _, own := range ns.ownedBy(&want) {
		if own.seq == seq {
			return ok()
		}
	}
	return fail(storepb.Code_NOT_FOUND)
}

// without answers what locks have beside a range.
func without(locks []*advisory, cut *advisory) []*advisory {
	var left []*advisory
	for _, a := range locks {
		left = append(left, a.without(cut)...)
	}
	return left
}

func (ns *Namespace) holds(want *advisory) bool {
	missing := []*advisory{want}
	for _, own := range ns.ownedIn(want) {
		if own.exclusive || !want.exclusive {
			missing = without(missing, own)
		}
	}
	return len(missing) == 0
}

// interruptLock is a signal for somebody who waits. A request that has become a lock stays one: the caller
// is told so instead.
func (ns *Namespace) interruptLock(session uint64, op *storepb.InterruptLock) *storepb.Result {
	w, waiting := ns.request(session, op.GetSeq())
	if !waiting {
		return ns.whetherHeld(session, op.GetSeq(), &storepb.TakeLock{
			Ino: op.GetIno(), Kind: op.GetKind(), Owner: op.GetOwner(), Type: op.GetType(), Start: op.GetStart(), End: op.GetEnd(),
		})
	}
	ns.deleteWaiter(w)
	changed := *w
	changed.interrupted = ns.time
	ns.putWaiter(&changed)
	ns.serveQueue(w.ino, w.kind) // those who waited for it need not now
	return fail(storepb.Code_WAITING)
}
