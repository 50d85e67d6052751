package lease

import (
	"time"

	"lockfs/raftstore/ids"
)

// Pause ends granting in a term until [Table.Resume], and returns how long its leases last at most. It
// returns false for a term in which the table did not begin.
func (t *Table) Pause(term ids.Term, now time.Duration) (lasts time.Duration, paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pause(term, now)
}

// Stop is Pause for good: the leader of the next term relies on it. The next leader need not wait for older
// leases, because the table began after their end.
func (t *Table) Stop(term ids.Term, now time.Duration) (lasts time.Duration, resigned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if lasts, resigned = t.pause(term, now); resigned {
		t.stopped = true
	}
	return lasts, resigned
}

// Resume grants again after Pause, unless Stop was called or the term has changed.
func (t *Table) Resume(term ids.Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isOf(term) && !t.stopped {
		t.open = true
	}
}

func (t *Table) pause(term ids.Term, now time.Duration) (lasts time.Duration, paused bool) {
	if !t.isOf(term) {
		return 0, false
	}
	t.open = false
	if last, found := t.byEnd.Max(); found {
		lasts = max(0, last.until-now)
	}
	return lasts, true
}

// isOf reports whether the table began in a term.
func (t *Table) isOf(term ids.Term) bool { return term != 0 && t.term == term }
