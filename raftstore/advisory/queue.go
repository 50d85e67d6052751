package advisory

import (
	"math"

	"lockfs/raftstore/ids"
)

func (t *Table) request(session ids.Session, seq ids.Sequence) (*waiter, bool) {
	return t.requests.Get(&waiter{lock: lock{session: session, seq: seq}})
}

func (t *Table) requestsOf(owner *lock) []*waiter {
	var own []*waiter
	t.byOwner.Ascend(&waiter{lock: lock{session: owner.session, owner: owner.owner, ino: owner.ino, kind: owner.kind}}, func(w *waiter) bool {
		if !w.sameOwner(owner) || fileOf(&w.lock) != fileOf(owner) {
			return false
		}
		own = append(own, w)
		return true
	})
	return own
}

// interruptedRequest returns the queued request of a repeated call.
func (t *Table) interruptedRequest(want *lock) (again *waiter) {
	t.resumable.Ascend(&waiter{lock: *want}, func(w *waiter) bool {
		if w.sameOwner(want) && fileOf(&w.lock) == fileOf(want) && w.start == want.start && w.end == want.end && w.exclusive == want.exclusive {
			again = w
		}
		return false
	})
	return again
}

func (t *Table) requestsOfSession(session ids.Session) []*waiter {
	var own []*waiter
	t.requests.Ascend(&waiter{lock: lock{session: session}}, func(w *waiter) bool {
		if w.session == session {
			own = append(own, w)
		}
		return w.session == session
	})
	return own
}

// queuedAgainst returns an earlier request that goes before a later one: it is not interrupted, both cannot
// be held, and it is not stuck behind locks of the later one's owner.
func (t *Table) queuedAgainst(later *waiter) (inTheWay *waiter) {
	search := conflictWith(&later.lock)
	search.before = later.position
	found := t.files[fileOf(&later.lock)].queue.latest(search)
	switch {
	case found == nil || t.passes(later):
		return nil
	case !t.mayBeWaitedForIn(&later.lock):
		return found.request
	}
	t.eachNotStuck(later, func(w *waiter) bool {
		if w.excludes(&later.lock) {
			inTheWay = w
		}
		return inTheWay == nil
	})
	return inTheWay
}

// waitedForSteps bounds mayBeWaitedFor and mayBeWaitedForIn.
const waitedForSteps = 64

// mayBeWaitedForIn returns false if certainly no request in the file waits for a lock of an owner.
func (t *Table) mayBeWaitedForIn(owner *lock) bool {
	steps := waitedForSteps
	return t.isWaitedForWithin(owner, &steps)
}

// isWaitedForWithin looks in turn for the next lock of an owner and the next overlapping request of another,
// and counts steps down. It also returns true if the steps do not suffice.
func (t *Table) isWaitedForWithin(owner *lock, steps *int) bool {
	queue := t.files[fileOf(owner)].queue
	for at := uint64(0); at <= lastByte && *steps > 0; *steps-- {
		own := t.nextOwned(owner, at)
		if own == nil || queue == nil {
			return false
		}
		if queue.leftmost(conflictWith(own)) != nil {
			return true
		}
		behind := &conflict{start: own.end + 1, end: lastByte, exclusive: true, owner: ownerOf(owner), before: math.MaxUint64}
		next := queue.leftmost(behind)
		if next == nil {
			return false
		}
		at = max(behind.start, next.start)
	}
	return *steps <= 0
}

// passes reports whether a request waits for locks only, and goes before all requests. Its owner has locks in
// the file, and more than passedRequests requests are before it. Waiting for one of these might be waiting
// for itself, and comparing them takes long. It depends on locks and earlier requests alone, so a restored
// table grants the same requests.
func (t *Table) passes(later *waiter) bool {
	return t.nextOwned(&later.lock, 0) != nil && t.isFarBack(later)
}

// isFarBack reports whether more than passedRequests requests are before another one.
func (t *Table) isFarBack(w *waiter) bool {
	if t.edge == nil || t.edge.of != fileOf(&w.lock) {
		t.edge = &edge{of: fileOf(&w.lock), position: math.MaxUint64}
		t.queue(t.edge.of, func(other *waiter) bool {
			if t.edge.requests++; t.edge.requests > t.passed {
				t.edge.position = other.position
			}
			return t.edge.requests <= t.passed
		})
	}
	return t.edge.position < w.position
}

// eachNotStuck visits the earlier requests of other owners that do not wait, directly or indirectly, for
// locks of a request's owner. Waiting for those would be waiting for itself. It visits none if the request
// passes them all.
func (t *Table) eachNotStuck(later *waiter, visit func(*waiter) bool) {
	if t.passes(later) {
		return
	}
	var stuck *intervals // requests
	own := ownLocks{table: t, owner: &later.lock}
	t.queue(fileOf(&later.lock), func(w *waiter) bool {
		if w.position >= later.position {
			return false
		}
		if w.interrupted != 0 || w.sameOwner(&later.lock) {
			return true
		}
		if stuck.leftmost(conflictWith(&w.lock)) != nil || own.excludes(&w.lock) {
			if stuck.covering(w.start, true).past[1] <= w.end { // else all it excludes is stuck, for every owner
				stuck = stuck.put(interval{&w.lock, w})
			}
			return true
		}
		return visit(w)
	})
}

// ownLocks are the locks of one owner on a file.
type ownLocks struct {
	table *Table
	owner *lock
	tree  *intervals // nil until it is needed
}

// excludes reports whether one of the locks is in the way of another owner's request.
func (o *ownLocks) excludes(request *lock) bool {
	first := o.table.nextOwned(o.owner, request.start)
	if first == nil || first.start > request.end || first.exclusive || request.exclusive {
		return first != nil && first.start <= request.end
	}
	if o.tree == nil {
		for _, own := range o.table.ownedBy(o.owner) {
			o.tree = o.tree.put(interval{lock: own})
		}
	}
	return o.tree.leftmost(conflictWith(request)) != nil
}
