package advisory

// setRange makes a range an owner's, or nobody's. Pieces of one type that touch become one.
func (t *Table) setRange(want *lock, held bool) {
	for _, a := range t.ownedIn(want) {
		t.deleteLock(a)
		for _, piece := range a.without(want) {
			t.putLock(piece)
		}
	}
	if !held {
		return
	}
	whole := *want
	for next := t.toJoin(&whole); next != nil; next = t.toJoin(&whole) {
		t.deleteLock(next)
		whole.start, whole.end = min(whole.start, next.start), max(whole.end, next.end)
	}
	t.putLock(&whole)
}

// toJoin answers a lock that touches another one of its owner and type.
func (t *Table) toJoin(a *lock) *lock {
	if before := t.ownedBefore(a); before != nil && before.end+1 == a.start && before.exclusive == a.exclusive {
		return before
	}
	if a.end == lastByte {
		return nil
	}
	behind := *a
	behind.start, behind.end = a.end+1, a.end+1
	if after := t.ownedIn(&behind); len(after) > 0 && after[0].exclusive == a.exclusive {
		return after[0]
	}
	return nil
}

// ownedBy lists what an owner holds of a file, in order.
func (t *Table) ownedBy(owner *lock) []*lock {
	whole := *owner
	whole.start, whole.end = 0, lastByte
	return t.ownedIn(&whole)
}

// ownedIn lists what an owner holds of a range, in order.
func (t *Table) ownedIn(want *lock) []*lock {
	var own []*lock
	if before := t.ownedBefore(want); before != nil && before.end >= want.start {
		own = append(own, before)
	}
	from := &lock{ino: want.ino, kind: want.kind, session: want.session, owner: want.owner, start: want.start}
	t.held.Ascend(from, func(a *lock) bool {
		if !a.sameOwner(from) || !a.overlaps(want) {
			return false
		}
		own = append(own, a)
		return true
	})
	return own
}

// ownedBefore answers the last lock of an owner that begins before a range.
func (t *Table) ownedBefore(want *lock) (before *lock) {
	from := &lock{ino: want.ino, kind: want.kind, session: want.session, owner: want.owner, start: want.start}
	t.held.Descend(from, func(a *lock) bool {
		if a.ino == from.ino && a.kind == from.kind && a.sameOwner(from) {
			before = a
		}
		return false
	})
	return before
}

// splits tells whether a range is amid a lock of its owner.
func (t *Table) splits(want *lock) bool {
	own := t.ownedIn(want)
	return len(own) == 1 && own[0].start < want.start && own[0].end > want.end
}

func (t *Table) holds(want *lock) bool {
	missing := []*lock{want}
	for _, own := range t.ownedIn(want) {
		if own.exclusive || !want.exclusive {
			missing = without(missing, own)
		}
	}
	return len(missing) == 0
}

// heldAgainst answers a lock that is in the way of another one.
func (t *Table) heldAgainst(want *lock) (inTheWay *lock) {
	t.eachHeld(want.ino, want.kind, func(a *lock) bool {
		if a.excludes(want) {
			inTheWay = a
		}
		return inTheWay == nil
	})
	return inTheWay
}
