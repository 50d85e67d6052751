package advisory

import "lockfs/raftstore/storepb"

// deadlockSteps bounds the locks and requests in a search for a deadlock. An undetected circle waits until a
// request is interrupted, as with Linux, which searches ten owners.
const deadlockSteps = 2048

// isDeadlock reports whether a queued request waits for its own owner, through other waiters. Only processes
// count, all the way: another thread may unlock an open file description. A process with several requests has
// several threads, so it does not count either. Interrupted requests do not wait.
func (t *Table) isDeadlock(request *waiter) bool {
	if request.kind != storepb.LockKind_RECORD || t.onlyRequest(ownerOf(&request.lock)) != request {
		return false
	}
	if request.position == t.index && !t.mayBeWaitedFor(ownerOf(&request.lock)) {
		return false // no request waits for the last one in the queue, nor for its owner's locks
	}
	search := &deadlockSearch{table: t, seen: make(map[lockOwner]bool), unseen: make(map[file]index), left: deadlockSteps}
	next := []*waiter{request}
	for len(next) > 0 && search.left > 0 && !search.seen[ownerOf(&request.lock)] {
		for _, owner := range search.waitsFor(next[0]) {
			if search.seen[owner] {
				continue
			}
			search.seen[owner] = true
			if w := t.onlyRequest(owner); w != nil {
				next = append(next, w)
			}
		}
		next = next[1:]
	}
	return search.seen[ownerOf(&request.lock)]
}

// onlyRequest returns the request of an owner, if this is certainly a waiting process.
func (t *Table) onlyRequest(owner lockOwner) (only *waiter) {
	several := false
	t.byOwner.Ascend(&waiter{lock: lock{session: owner.session, owner: owner.owner}}, func(w *waiter) bool {
		if ownerOf(&w.lock) != owner {
			return false
		}
		if w.kind == storepb.LockKind_RECORD && w.interrupted == 0 {
			several = only != nil || !w.byProcess
			only = w
		}
		return !several
	})
	if several {
		return nil
	}
	return only
}

// mayBeWaitedFor returns false if certainly no request waits for a record lock of an owner, in any file.
func (t *Table) mayBeWaitedFor(owner lockOwner) bool {
	from := &lock{session: owner.session, owner: owner.owner, kind: storepb.LockKind_RECORD}
	for steps := waitedForSteps; steps > 0; steps-- {
		var own *lock
		t.bySession.Ascend(from, func(a *lock) bool {
			if a.session == owner.session && a.owner == owner.owner {
				own = a
			}
			return false
		})
		switch {
		case own == nil:
			return false
		case own.kind == storepb.LockKind_RECORD && own.until == 0 && t.isWaitedForWithin(own, &steps):
			return true
		case own.kind == storepb.LockKind_RECORD:
			from.ino = own.ino + 1 // the other locks of this file were checked
		default:
			from.ino = own.ino
		}
	}
	return true
}

// deadlockSearch visits every lock and request once, so a search takes at most the length of the queue.
type deadlockSearch struct {
	table  *Table
	seen   map[lockOwner]bool
	unseen map[file]index // unvisited requests
	left   int            // remaining steps
}

func (s *deadlockSearch) file(f file) index {
	in, found := s.unseen[f]
	if !found {
		in = s.table.files[f]
		s.unseen[f] = in
	}
	return in
}

// waitsFor returns the owners of the locks and earlier requests for which a request waits, without visited
// ones.
func (s *deadlockSearch) waitsFor(w *waiter) (owners []lockOwner) {
	f := fileOf(&w.lock)
	in := s.file(f)
	in.held = s.take(in.held, conflictWith(&w.lock), &owners)
	earlier := conflictWith(&w.lock)
	earlier.before = w.position
	switch {
	case s.table.passes(w): // it waits for locks only
	case in.queue.leftmost(earlier) != nil && s.table.isWaitedForWithin(&w.lock, &s.left):
		s.unseen[f] = in
		return append(owners, s.notStuck(w)...)
	default:
		in.queue = s.take(in.queue, earlier, &owners)
	}
	s.unseen[f] = in
	return owners
}

func (s *deadlockSearch) take(from *intervals, c *conflict, owners *[]lockOwner) (rest *intervals) {
	rest = from
	from.each(c, func(i *interval) bool {
		if s.left--; s.left < 0 {
			return false
		}
		rest = rest.remove(*i)
		if owner := ownerOf(i.lock); owner != nobody {
			*owners = append(*owners, owner)
		}
		return true
	})
	return rest
}

// notStuck is for a request of an owner for whose locks other requests wait.
func (s *deadlockSearch) notStuck(w *waiter) (owners []lockOwner) {
	s.table.queue(fileOf(&w.lock), func(earlier *waiter) bool {
		s.left--
		return s.left > 0 && earlier.position < w.position
	})
	if s.left <= 0 {
		return nil
	}
	s.table.eachNotStuck(w, func(earlier *waiter) bool {
		if earlier.excludes(&w.lock) {
			owners = append(owners, ownerOf(&earlier.lock))
		}
		return true
	})
	return owners
}
