package advisory

// setRange gives a range to an owner, or releases it. Adjacent pieces of one type are joined.
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

// toJoin returns an adjacent lock of the same owner and type.
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

func (t *Table) ownedBy(owner *lock) []*lock {
	whole := *owner
	whole.start, whole.end = 0, lastByte
	return t.ownedIn(&whole)
}

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

// ownedBefore returns the last lock of an owner that begins before a range.
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

// nextOwned returns the first lock of an owner that ends at or behind a byte.
func (t *Table) nextOwned(owner *lock, at uint64) (next *lock) {
	from := *owner
	from.start, from.end, from.until, from.seq = at, at, 0, 0
	if before := t.ownedBefore(&from); before != nil && before.end >= at {
		return before
	}
	t.held.Ascend(&from, func(a *lock) bool {
		if fileOf(a) == fileOf(&from) && a.sameOwner(&from) {
			next = a
		}
		return false
	})
	return next
}

// splits reports whether a range is amid a lock of its owner.
func (t *Table) splits(want *lock) bool {
	own := t.nextOwned(want, want.start)
	return own != nil && own.start < want.start && own.end > want.end
}

// holds reports whether an owner has a range, with at least the requested type.
func (t *Table) holds(want *lock) bool {
	for at := want.start; ; {
		own := t.nextOwned(want, at)
		switch {
		case own == nil || own.start > at || want.exclusive && !own.exclusive:
			return false
		case own.end >= want.end:
			return true
		}
		at = own.end + 1
	}
}

// heldAgainst returns the conflicting lock that begins first.
func (t *Table) heldAgainst(want *lock) *lock {
	if found := t.files[fileOf(want)].held.leftmost(conflictWith(want)); found != nil {
		return found.lock
	}
	return nil
}

// Splits reports whether a command releases the middle of a lock, so its owner has one more.
func (t *Table) Splits(want *Wanted) bool { return want.unlock && t.splits(&want.lock) }
