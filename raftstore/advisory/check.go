package advisory

import "fmt"

// Check tells what is wrong with a table: indexes that disagree, an owner that has a byte twice, locks that exclude each other. It takes
// time in the square of the number of locks, and is there for tests of those who use a table.
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
	return t.checkIndexes()
}

func (t *Table) checkIndexes() error {
	var want counts
	delayed, interrupted := 0, 0
	for _, a := range t.held.Items() {
		want.add(a, +1)
		if a.until == 0 {
			continue
		}
		delayed++
		if same, found := t.delayed.Get(a); !found || same != a {
			return fmt.Errorf("%+v is not among those that go", a)
		}
	}
	for _, w := range t.waiters.Items() {
		want.add(&w.lock, +1)
		if same, found := t.requests.Get(w); !found || same != w || w.position == 0 || w.position > t.index {
			return fmt.Errorf("%+v is not among the requests of its session", w)
		}
		if w.interrupted == 0 {
			continue
		}
		interrupted++
		if same, found := t.interrupted.Get(w); !found || same != w {
			return fmt.Errorf("%+v is not among those that were interrupted", w)
		}
	}
	if delayed != t.delayed.Len() || interrupted != t.interrupted.Len() || t.waiters.Len() != t.requests.Len() {
		return fmt.Errorf("%d, %d and %d in indexes of %d, %d and %d", t.delayed.Len(), t.interrupted.Len(), t.requests.Len(),
			delayed, interrupted, t.waiters.Len())
	}
	if !want.equal(&t.counts) {
		return fmt.Errorf("the counts are %+v, not %+v", t.counts, want)
	}
	return nil
}
