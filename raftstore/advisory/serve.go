package advisory

// ownerHasMore checks an owner's requests again after it got a lock: earlier requests that wait for this lock
// no longer go first. If no request waits for it, only those matter that were parked while the owner had no
// lock (sameBefore).
func (t *Table) ownerHasMore(a *lock) {
	if a.until != 0 {
		return
	}
	var own []*waiter
	first := &waiter{lock: lock{session: a.session, owner: a.owner, ino: a.ino, kind: a.kind}}
	t.service.ofOthers.Ascend(&parking{request: first}, func(p *parking) bool {
		is := p.request.sameOwner(a) && fileOf(&p.request.lock) == fileOf(a)
		if is {
			own = append(own, p.request)
		}
		return is
	})
	if t.files[fileOf(a)].queue.leftmost(conflictWith(a)) != nil {
		own = t.requestsOf(a)
	}
	for _, w := range own {
		if p, parked := t.service.parked[w]; parked && p.behind != 0 {
			t.service.candidates.Set(w)
		}
	}
}

// putAmid adds a request to the queue before later ones. Requests behind it may now be stuck behind locks of
// later owners, so they are checked again.
func (t *Table) putAmid(w *waiter) {
	t.putWaiter(w)
	t.service.ofHolders.Ascend(&parking{request: w}, func(p *parking) bool {
		if fileOf(&p.request.lock) != fileOf(&w.lock) {
			return false
		}
		t.service.candidates.Set(p.request)
		return true
	})
}

// serve grants all possible requests, the earliest first.
func (t *Table) serve() {
	for {
		for _, a := range t.service.freed {
			t.findCandidates(a)
		}
		t.service.freed = nil
		w, found := t.service.candidates.PopMin()
		if !found {
			return
		}
		if p := t.reasonToWait(w); p != nil {
			t.service.park(p)
		} else {
			t.grant(w)
		}
	}
}

func (t *Table) grant(w *waiter) {
	t.deleteWaiter(w)
	granted := w.lock
	granted.since = t.now
	t.setRange(&granted, true)
}

func (t *Table) reasonToWait(w *waiter) *parking {
	isHolder := t.nextOwned(&w.lock, 0) != nil
	if isHolder && t.holds(&w.lock) {
		return nil // the request in the way waits for this owner
	}
	// A request parked behind its predecessor costs nothing until that is granted. If others wait for its
	// owner's locks, finding a request that goes first takes long, so locks come first.
	locksFirst := isHolder && (t.isFarBack(w) || t.mayBeWaitedForIn(&w.lock))
	if !locksFirst {
		if earlier := t.earlier(w, isHolder); earlier != nil {
			return &parking{request: w, behind: earlier.position, ofHolder: isHolder}
		}
	}
	if held := t.heldAgainst(&w.lock); held != nil {
		if locksFirst {
			if same := t.lockedBefore(w); same != nil {
				return &parking{request: w, behind: same.position, forLock: true}
			}
		}
		return &parking{request: w, byte: max(held.start, w.start)}
	}
	if locksFirst {
		if earlier := t.earlier(w, isHolder); earlier != nil {
			return &parking{request: w, behind: earlier.position, ofHolder: isHolder}
		}
	}
	return nil
}

// lockedBefore returns the last earlier request with the same range and type, if it waits for a lock. The
// same lock is in the way of the later request, unless its owner has a lock in the range.
func (t *Table) lockedBefore(w *waiter) *waiter {
	if own := t.nextOwned(&w.lock, w.start); own != nil && own.start <= w.end {
		return nil
	}
	same := t.sameRangeBefore(w)
	if same == nil || !t.service.waitsForLock(same) {
		return nil
	}
	return same
}

// earlier returns an earlier request that makes a request wait: it goes first, or waits for the same.
func (t *Table) earlier(w *waiter, isHolder bool) *waiter {
	if !isHolder {
		if same := t.sameBefore(w); same != nil {
			return same
		}
	}
	return t.queuedAgainst(w)
}

// sameBefore returns the last earlier request of another owner with the same range and type. Its reason to
// wait holds for the later request too, if the later owner has neither locks nor earlier requests of the
// file.
func (t *Table) sameBefore(w *waiter) *waiter {
	if t.wantedBefore(w) {
		return nil
	}
	return t.sameRangeBefore(w)
}

func (t *Table) sameRangeBefore(w *waiter) (before *waiter) {
	t.byRange.Descend(w, func(same *waiter) bool {
		if same == w {
			return true
		}
		if !lessRange(same, w) && !lessRange(w, same) {
			before = same
		}
		return false
	})
	return before
}

func (t *Table) wantedBefore(w *waiter) (before bool) {
	t.byOwner.Ascend(&waiter{lock: lock{session: w.session, owner: w.owner, ino: w.ino, kind: w.kind}}, func(first *waiter) bool {
		before = first != w
		return false
	})
	return before
}

// findCandidates finds the requests parked at the bytes of a former lock.
func (t *Table) findCandidates(was *lock) {
	held := t.files[fileOf(was)].held
	for _, exclusive := range [...]bool{false, true} {
		from := &parking{request: &waiter{lock: lock{ino: was.ino, kind: was.kind, exclusive: exclusive}}, byte: was.start}
		for from != nil {
			from = t.candidatesFrom(from, was.end, held)
		}
	}
}

// candidatesFrom checks the next byte with parked requests, up to an end, and returns where to continue; nil:
// nowhere.
func (t *Table) candidatesFrom(from *parking, end uint64, held *intervals) (next *parking) {
	var at *parking
	t.service.atByte.Ascend(from, func(p *parking) bool {
		if fileOf(&p.request.lock) == fileOf(&from.request.lock) && p.request.exclusive == from.request.exclusive && p.byte <= end {
			at = p
		}
		return false
	})
	if at == nil {
		return nil
	}
	behind := func(b uint64) *parking {
		return &parking{request: &waiter{lock: from.request.lock}, byte: b}
	}
	covered := held.covering(at.byte, !at.request.exclusive)
	switch one, another := covered.past[0], covered.past[1]; {
	case one <= at.byte:
		t.service.candidates.Set(at.request)
		next = behind(at.byte)
		next.request.position = at.request.position + 1
		return next
	case another > at.byte: // one of two owners differs from the owner of any request
		return behind(min(one, another))
	default:
		only := from.request.lock
		only.session, only.owner = covered.owner[0].session, covered.owner[0].owner
		t.service.wakeOwner(&parking{request: &waiter{lock: only}, byte: at.byte}, min(one, end+1))
		return behind(one)
	}
}
