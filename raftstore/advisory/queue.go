package advisory

import "lockfs/raftstore/ids"

// request answers what waits for a command of a session.
func (t *Table) request(session ids.Session, seq ids.Sequence) (*waiter, bool) {
	return t.requests.Get(&waiter{lock: lock{session: session, seq: seq}})
}

func (t *Table) requestsOf(owner *lock) []*waiter {
	var own []*waiter
	t.queue(owner.ino, owner.kind, func(w *waiter) bool {
		if w.sameOwner(owner) {
			own = append(own, w)
		}
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

// queuedAgainst answers an earlier request that a later one has to let pass: somebody waits for it, both
// cannot be held, and it is not itself stuck behind what the later one's owner has.
func (t *Table) queuedAgainst(later *waiter) (inTheWay *waiter) {
	t.eachNotStuck(later, func(w *waiter) bool {
		if w.excludes(&later.lock) {
			inTheWay = w
		}
		return inTheWay == nil
	})
	return inTheWay
}

// eachNotStuck visits the earlier requests of others that wait neither for what a request's owner holds nor
// for one that does. To wait for those would be to wait for oneself.
func (t *Table) eachNotStuck(later *waiter, visit func(*waiter) bool) {
	var stuck *standing
	t.queue(later.ino, later.kind, func(w *waiter) bool {
		if w.position >= later.position {
			return false
		}
		if w.interrupted != 0 || w.sameOwner(&later.lock) {
			return true
		}
		if stuck == nil {
			stuck = newStanding(t.ownedBy(&later.lock))
		}
		if stuck.against(&w.lock) != nil {
			stuck.add(&w.lock)
			return true
		}
		return visit(w)
	})
}

// standing is locks and requests that others have to respect.
type standing struct{ exclusive, shared []*lock }

func newStanding(locks []*lock) *standing {
	s := new(standing)
	for _, a := range locks {
		s.add(a)
	}
	return s
}

func (s *standing) add(a *lock) {
	if a.exclusive {
		s.exclusive = append(s.exclusive, a)
	} else {
		s.shared = append(s.shared, a)
	}
}

// against answers one that excludes another lock.
func (s *standing) against(want *lock) *lock {
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
