package advisory

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// isDeadlock tells whether a request that is in the queue waits for its own owner, through others that wait.
// Only processes count, all the way: an open file description that waits in one thread may be unlocked by
// another. So may a process with several requests, which has several threads. What was interrupted does not
// wait.
func (t *Table) isDeadlock(request *waiter) bool {
	if request.kind != storepb.LockKind_RECORD {
		return false
	}
	search := &deadlockSearch{
		table: t, seen: make(map[lockOwner]bool), files: make(map[ids.Inode]*unseen), requests: make(map[ids.Session]map[lockOwner]*waiter),
	}
	if search.onlyRequest(&request.lock) != request {
		return false
	}
	next := []*waiter{request}
	for len(next) > 0 && !search.seen[ownerOf(&request.lock)] {
		for _, a := range search.waitsFor(next[0]) {
			if w := search.onlyRequest(a); w != nil && !search.seen[ownerOf(a)] {
				next = append(next, w)
			}
			search.seen[ownerOf(a)] = true
		}
		next = next[1:]
	}
	return search.seen[ownerOf(&request.lock)]
}

type lockOwner struct {
	session ids.Session
	owner   ids.Owner
}

func ownerOf(a *lock) lockOwner { return lockOwner{a.session, a.owner} }

// deadlockSearch sees every owner once, so that a long queue costs no more than its length.
type deadlockSearch struct {
	table    *Table
	seen     map[lockOwner]bool
	files    map[ids.Inode]*unseen
	requests map[ids.Session]map[lockOwner]*waiter // by session; nil for an owner with several
}

// unseen is what owners who were not seen yet hold of a file, and what they wait for.
type unseen struct {
	held   []*lock
	queued []*waiter
}

func (s *deadlockSearch) file(ino ids.Inode) *unseen {
	if there, found := s.files[ino]; found {
		return there
	}
	in := new(unseen)
	s.table.eachHeld(ino, storepb.LockKind_RECORD, func(a *lock) bool {
		if a.until == 0 {
			in.held = append(in.held, a)
		}
		return true
	})
	s.table.queue(ino, storepb.LockKind_RECORD, func(w *waiter) bool {
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
func (s *deadlockSearch) waitsFor(w *waiter) []*lock {
	in := s.file(w.ino)
	var others []*lock
	held := in.held[:0]
	for _, a := range in.held {
		switch {
		case s.seen[ownerOf(a)]:
		case a.excludes(&w.lock):
			others = append(others, a)
		default:
			held = append(held, a)
		}
	}
	in.held = held
	return append(others, s.queuedAgainst(w, in)...)
}

func (s *deadlockSearch) queuedAgainst(w *waiter, in *unseen) []*lock {
	queued, isAny := in.queued[:0], false
	for _, earlier := range in.queued {
		if !s.seen[ownerOf(&earlier.lock)] {
			queued = append(queued, earlier)
			isAny = isAny || earlier.position < w.position && earlier.excludes(&w.lock)
		}
	}
	in.queued = queued
	if !isAny {
		return nil
	}
	var others []*lock
	s.table.eachNotStuck(w, func(earlier *waiter) bool {
		if earlier.excludes(&w.lock) {
			others = append(others, &earlier.lock)
		}
		return true
	})
	return others
}

// onlyRequest answers what an owner waits for that is surely a process and surely waits.
func (s *deadlockSearch) onlyRequest(owner *lock) *waiter {
	of, found := s.requests[owner.session]
	if !found {
		of = make(map[lockOwner]*waiter)
		for _, w := range s.table.requestsOfSession(owner.session) {
			if w.kind != storepb.LockKind_RECORD || w.interrupted != 0 {
				continue
			}
			if _, another := of[ownerOf(&w.lock)]; another || !w.byProcess {
				of[ownerOf(&w.lock)] = nil
			} else {
				of[ownerOf(&w.lock)] = w
			}
		}
		s.requests[owner.session] = of
	}
	return of[ownerOf(owner)]
}
