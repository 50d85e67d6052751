package advisory

import (
	"math"

	"lockfs/raftstore/ids"
)

// request answers what waits for a command of a session.
func (t *Table) request(session ids.Session, seq ids.Sequence) (*waiter, bool) {
	return t.requests.Get(&waiter{lock: lock{session: session, seq: seq}})
}

// requestsOf lists the requests of an owner for a file, by arrival.
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

// interruptedRequest answers the request that a call which is made again has in the queue.
func (t *Table) interruptedRequest(want *lock) *waiter {
	for _, w := range t.requestsOf(want) {
		if w.interrupted != 0 && w.start == want.start && w.end == want.end && w.exclusive == want.exclusive {
			return w
		}
	}
	return nil
}

// requestsOfSession lists what a session waits for, in the order of its commands.
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

// queuedAgainst returns an earlier request that a later one has to let pass: it was not interrupted, both cannot be held, and it is not
// stuck behind what the later one's owner holds.
func (t *Table) queuedAgainst(later *waiter) (inTheWay *waiter) {
	search := conflictWith(&later.lock)
	search.before = later.position
	found := t.files[fileOf(&later.lock)].queue.latest(search)
	switch {
	case found == nil:
		return nil
	case !t.isWaitedFor(&later.lock):
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

// isWaitedFor reports whether a lock of an owner is in the way of a request of another one. It looks in turn for the next lock and the next
// request that may overlap, so that it takes at most as many steps as there are of the fewer.
func (t *Table) isWaitedFor(owner *lock) bool {
	steps := math.MaxInt
	return t.isWaitedForWithin(owner, &steps)
}

// isWaitedForWithin counts steps down. It returns true too if they do not suffice.
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

// eachNotStuck visits the earlier requests of others that wait neither for what a request's owner holds nor
// for one that does. To wait for those would be to wait for oneself. It takes time in proportion to the queue.
func (t *Table) eachNotStuck(later *waiter, visit func(*waiter) bool) {
	var stuck *intervals
	for _, own := range t.ownedBy(&later.lock) {
		stuck = stuck.put(interval{lock: own})
	}
	t.queue(fileOf(&later.lock), func(w *waiter) bool {
		if w.position >= later.position {
			return false
		}
		if w.interrupted != 0 || w.sameOwner(&later.lock) {
			return true
		}
		if stuck.leftmost(conflictWith(&w.lock)) != nil {
			stuck = stuck.put(interval{&w.lock, w})
			return true
		}
		return visit(w)
	})
}
