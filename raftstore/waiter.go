package raftstore

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

// queuedAgainst answers an earlier request that a later one has to let pass: somebody waits for it, both
// cannot be held, and it does not itself wait for what the later one's owner has.
func (ns *Namespace) queuedAgainst(later *waiter) (inTheWay *waiter) {
	ns.queue(later.ino, later.kind, func(w *waiter) bool {
		if w.position >= later.position {
			return false
		}
		if w.interrupted == 0 && w.excludes(&later.advisory) && !ns.ownsAgainst(later, w) {
			inTheWay = w
		}
		return inTheWay == nil
	})
	return inTheWay
}

// ownsAgainst tells whether the owner of one request holds what another one waits for.
func (ns *Namespace) ownsAgainst(owner, waiting *waiter) bool {
	for _, own := range ns.ownedBy(&owner.advisory) {
		if own.excludes(&waiting.advisory) {
			return true
		}
	}
	return false
}

// serveQueue makes locks of the requests that can be.
func (ns *Namespace) serveQueue(ino uint64, kind storepb.LockKind) {
	for {
		next := ns.nextServed(ino, kind)
		if next == nil {
			return
		}
		ns.deleteWaiter(next)
		granted := next.advisory
		granted.since = ns.time
		ns.setRange(&granted, true)
	}
}

func (ns *Namespace) nextServed(ino uint64, kind storepb.LockKind) (next *waiter) {
	ns.queue(ino, kind, func(w *waiter) bool {
		if w.interrupted == 0 && ns.heldAgainst(&w.advisory) == nil && ns.queuedAgainst(w) == nil {
			next = w
		}
		return next == nil
	})
	return next
}

// Request names a request for an advisory lock: a session's command.
type Request struct{ Session, Seq uint64 }

// Ended answers the requests that the last command made locks, or changed otherwise.
func (ns *Namespace) Ended() []Request { return ns.ended }

// awaitLock tells what has become of a request. One that is not there any more has become a lock if its
// owner has one that stems from it.
func (ns *Namespace) awaitLock(q *storepb.AwaitLock) *storepb.Result {
	if w, waiting := ns.request(q.GetSession(), q.GetSeq()); waiting {
		if w.interrupted != 0 {
			return fail(storepb.Code_NOT_FOUND)
		}
		return fail(storepb.Code_WAITING)
	}
	return ns.stemsFrom(&advisory{
		ino: q.GetIno(), kind: q.GetKind(), session: q.GetSession(), owner: q.GetOwner(), seq: q.GetSeq(),
	})
}

// stemsFrom answers OK if an owner has a lock that stems from a command, else NOT_FOUND.
func (ns *Namespace) stemsFrom(command *advisory) *storepb.Result {
	for _, own := range ns.ownedBy(command) {
		if own.seq == command.seq {
			return ok()
		}
	}
	return fail(storepb.Code_NOT_FOUND)
}

// interruptLock is a signal for somebody who waits. A request that has become a lock stays one: the caller
// is told so instead.
func (ns *Namespace) interruptLock(session uint64, op *storepb.InterruptLock) *storepb.Result {
	w, waiting := ns.request(session, op.GetSeq())
	if !waiting {
		return ns.stemsFrom(&advisory{
			ino: op.GetIno(), kind: op.GetKind(), session: session, owner: op.GetOwner(), seq: op.GetSeq(),
		})
	}
	ns.deleteWaiter(w)
	changed := *w
	changed.interrupted = ns.time
	ns.putWaiter(&changed)
	ns.serveQueue(w.ino, w.kind) // those who waited for it need not now
	return fail(storepb.Code_WAITING)
}
