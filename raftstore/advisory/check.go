package advisory

import (
	"fmt"
	"maps"
)

// Check returns an error for indexes that disagree, an owner with two locks of a byte, or locks that exclude
// each other. It takes quadratic time in the locks, and is for tests.
func (t *Table) Check() error {
	all := t.held.Items()
	for i, a := range all {
		if i > 0 && all[i-1].sameOwner(a) && all[i-1].overlaps(a) || a.start > a.end {
			return fmt.Errorf("%+v after what its owner has", a)
		}
		for _, b := range all[i+1:] {
			if a.excludes(b) && (a.until == 0 || b.until == 0) {
				return fmt.Errorf("%+v excludes %+v", a, b)
			}
		}
	}
	if err := t.checkIndexes(); err != nil {
		return err
	}
	return t.checkService()
}

func (t *Table) checkService() error {
	if t.service.candidates.Len() != 0 || len(t.service.freed) != 0 {
		return fmt.Errorf("%d candidates and %d released locks were not looked at", t.service.candidates.Len(), len(t.service.freed))
	}
	waiting := 0
	for _, w := range t.waiters.Items() {
		p, parked := t.service.parked[w]
		switch {
		case w.interrupted != 0 && !parked:
			continue
		case w.interrupted != 0 || !parked:
			return fmt.Errorf("%+v: parked %v", w, parked)
		}
		waiting++
		if !t.isReason(p) {
			return fmt.Errorf("%+v does not have to wait for %+v", w, p)
		}
	}
	if waiting != len(t.service.parked) || waiting != t.service.atByte.Len()+t.service.behind.Len() || t.service.atByte.Len() != t.service.ofOwner.Len() || waiting != t.byRange.Len() {
		return fmt.Errorf("%d wait, %d are parked: %d at a byte, %d behind another request; %d in all", waiting, len(t.service.parked),
			t.service.atByte.Len(), t.service.behind.Len(), t.byRange.Len())
	}
	return nil
}

func (t *Table) isReason(p *parking) bool {
	is := false
	if p.behind == 0 {
		at := p.request.lock
		at.start, at.end = p.byte, p.byte
		for _, a := range t.held.Items() {
			is = is || at.overlaps(&p.request.lock) && a.excludes(&at)
		}
		return is
	}
	earlier, found := t.waiters.Get(&waiter{lock: p.request.lock, position: p.behind})
	if !found || earlier.interrupted != 0 || earlier.position >= p.request.position {
		return false
	}
	if p.forLock {
		same := !lessRange(earlier, p.request) && !lessRange(p.request, earlier)
		return same && t.service.waitsForLock(earlier) && t.heldAgainst(&p.request.lock) != nil
	}
	if earlier.sameOwner(&p.request.lock) || t.passes(p.request) {
		return false
	}
	if !lessRange(earlier, p.request) && !lessRange(p.request, earlier) && len(t.ownedBy(&p.request.lock)) == 0 && !t.wantedBefore(p.request) {
		return true
	}
	t.eachNotStuck(p.request, func(w *waiter) bool {
		is = is || w == earlier && w.excludes(&p.request.lock)
		return true
	})
	return is
}

func (t *Table) checkIndexes() error {
	var want counts
	delayed, interrupted := 0, 0
	for _, a := range t.held.Items() {
		want.add(a, +1)
		if same, found := t.bySession.Get(a); !found || same != a {
			return fmt.Errorf("%+v is not among the locks of its session", a)
		}
		if in := t.files[fileOf(a)]; !in.held.has(interval{lock: a}) {
			return fmt.Errorf("%+v is not among the locks of its file", a)
		}
		if a.until == 0 {
			continue
		}
		delayed++
		if same, found := t.delayed.Get(a); !found || same != a {
			return fmt.Errorf("%+v is not among those that go", a)
		}
	}
	for _, w := range t.waiters.Items() {
		want.addRequest(&w.lock, +1)
		if same, found := t.requests.Get(w); !found || same != w || w.position == 0 || w.position > t.index {
			return fmt.Errorf("%+v is not among the requests of its session", w)
		}
		if same, found := t.byOwner.Get(w); !found || same != w {
			return fmt.Errorf("%+v is not among the requests of its owner", w)
		}
		if in := t.files[fileOf(&w.lock)]; !in.queue.has(interval{&w.lock, w}) {
			return fmt.Errorf("%+v is not among the requests of its file", w)
		}
		if w.interrupted == 0 {
			continue
		}
		interrupted++
		if same, found := t.interrupted.Get(w); !found || same != w {
			return fmt.Errorf("%+v is not among those that were interrupted", w)
		}
	}
	if delayed != t.delayed.Len() || interrupted != t.interrupted.Len() || interrupted != t.resumable.Len() || t.waiters.Len() != t.requests.Len() {
		return fmt.Errorf("%d, %d and %d in indexes of %d, %d and %d", t.delayed.Len(), t.interrupted.Len(), t.requests.Len(),
			delayed, interrupted, t.waiters.Len())
	}
	if !want.equal(&t.counts) {
		return fmt.Errorf("the counts are %+v, not %+v", t.counts, want)
	}
	return t.checkFiles()
}

func (t *Table) checkFiles() error {
	held, queued := 0, 0
	for f, in := range t.files {
		if in == (index{}) {
			return fmt.Errorf("%+v has nothing", f)
		}
		for _, tree := range [...]*intervals{in.held, in.queue} {
			if err := tree.check(); err != nil {
				return fmt.Errorf("%+v: %w", f, err)
			}
		}
		held, queued = held+in.held.size(), queued+in.queue.size()
	}
	if held != t.held.Len() || held != t.bySession.Len() || queued != t.waiters.Len() || queued != t.byOwner.Len() {
		return fmt.Errorf("files have %d and %d, sessions %d and %d of %d locks and %d requests", held, queued,
			t.bySession.Len(), t.byOwner.Len(), t.held.Len(), t.waiters.Len())
	}
	heldBy, heldOf := make(map[holding]int), make(map[sessionFile]int)
	for _, a := range t.held.Items() {
		heldOf[sessionFile{a.ino, a.session}]++
		if a.until == 0 {
			heldBy[holding{a.ino, a.session, a.pid}]++
		}
	}
	if !maps.Equal(heldBy, t.heldBy) || !maps.Equal(heldOf, t.heldOf) {
		return fmt.Errorf("counted %v and %v, not %v and %v", t.heldBy, t.heldOf, heldBy, heldOf)
	}
	return nil
}

func (t *intervals) size() int {
	if t == nil {
		return 0
	}
	return t.left.size() + 1 + t.right.size()
}

func (t *intervals) has(i interval) bool {
	if t == nil {
		return false
	}
	switch order := compare(&i, &t.interval); {
	case order < 0:
		return t.left.has(i)
	case order > 0:
		return t.right.has(i)
	}
	return t.interval == i
}

func (t *intervals) check() error {
	if t == nil {
		return nil
	}
	for _, side := range [...]*intervals{t.left, t.right} {
		if err := side.check(); err != nil {
			return err
		}
	}
	same := join(t.left, t.interval, t.right)
	if t.below != same.below || t.height != same.height || max(t.left.depth(), t.right.depth())-min(t.left.depth(), t.right.depth()) > 1 ||
		t.left != nil && compare(&t.left.interval, &t.interval) >= 0 || t.right != nil && compare(&t.interval, &t.right.interval) >= 0 {
		return fmt.Errorf("%+v is out of place", t.lock)
	}
	return nil
}
