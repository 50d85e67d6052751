package namespace

import "lockfs/raftstore/storepb"

// isDeadlock tells whether a request that is in the queue waits for its own owner, through others that wait.
// Only processes count, all the way: an open file description that waits in one thread may be unlocked by
// another. So may a process with several requests, which has several threads. What was interrupted does not
// wait.
func (ns *Namespace) isDeadlock(request *waiter) bool {
	if request.kind != storepb.LockKind_RECORD {
		return false
	}
	search := &deadlockSearch{
		ns: ns, seen: make(map[lockOwner]bool), files: make(map[uint64]*unseen), requests: make(map[uint64]map[lockOwner]*waiter),
	}
	if search.onlyRequest(&request.advisory) != request {
		return false
	}
	next := []*waiter{request}
	for len(next) > 0 && !search.seen[ownerOf(&request.advisory)] {
		for _, a := range search.waitsFor(next[0]) {
			if w := search.onlyRequest(a); w != nil && !search.seen[ownerOf(a)] {
				next = append(next, w)
			}
			search.seen[ownerOf(a)] = true
		}
		next = next[1:]
	}
	return search.seen[ownerOf(&request.advisory)]
}

type lockOwner struct{ session, owner uint64 }

func ownerOf(a *advisory) lockOwner { return lockOwner{a.session, a.owner} }

// deadlockSearch sees every owner once, so that a long queue costs no more than its length.
type deadlockSearch struct {
	ns       *Namespace
	seen     map[lockOwner]bool
	files    map[uint64]*unseen
	requests map[uint64]map[lockOwner]*waiter // by session; nil for an owner with several
}

// unseen is what owners who were not seen yet hold of a file, and what they wait for.
type unseen struct {
	held   []*advisory
	queued []*waiter
}

func (s *deadlockSearch) file(ino uint64) *unseen {
	if there, found := s.files[ino]; found {
		return there
	}
	in := new(unseen)
	s.ns.eachHeld(ino, storepb.LockKind_RECORD, func(a *advisory) bool {
		if a.until == 0 {
			in.held = append(in.held, a)
		}
		return true
	})
	s.ns.queue(ino, storepb.LockKind_RECORD, func(w *waiter) bool {
		if w.interrupted == 0 {
			in.queued = append(in.queued, w)
		}
		return true
	})
	s.files[ino] = in
	return in
}

// waitsFor lists the locks and the earlier requests that a request has to wait for, of owners who were not
// seen yet.
func (s *deadlockSearch) waitsFor(w *waiter) []*advisory {
	in := s.file(w.ino)
	var others []*advisory
	held := in.held[:0]
	for _, a := range in.held {
		switch {
		case s.seen[ownerOf(a)]:
		case a.excludes(&w.advisory):
			others = append(others, a)
		default:
			held = append(held, a)
		}
	}
	in.held = held
	return append(others, s.queuedAgainst(w, in)...)
}

func (s *deadlockSearch) queuedAgainst(w *waiter, in *unseen) []*advisory {
	queued, isAny := in.queued[:0], false
	for _, earlier := range in.queued {
		if !s.seen[ownerOf(&earlier.advisory)] {
			queued = append(queued, earlier)
			isAny = isAny || earlier.position < w.position && earlier.excludes(&w.advisory)
		}
	}
	in.queued = queued
	if !isAny {
		return nil
	}
	var others []*advisory
	s.ns.eachNotStuck(w, func(earlier *waiter) bool {
		if earlier.excludes(&w.advisory) {
			others = append(others, &earlier.advisory)
		}
		return true
	})
	return others
}

// onlyRequest answers what an owner waits for that is surely a process and surely waits.
func (s *deadlockSearch) onlyRequest(owner *advisory) *waiter {
	of, found := s.requests[owner.session]
	if !found {
		of = make(map[lockOwner]*waiter)
		for _, w := range s.ns.requestsOfSession(owner.session) {
			if w.kind != storepb.LockKind_RECORD || w.interrupted != 0 {
				continue
			}
			if _, another := of[ownerOf(&w.advisory)]; another || !w.byProcess {
				of[ownerOf(&w.advisory)] = nil
			} else {
				of[ownerOf(&w.advisory)] = w
			}
		}
		s.requests[owner.session] = of
	}
	return of[ownerOf(owner)]
}
