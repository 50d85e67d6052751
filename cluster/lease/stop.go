package lease

import (
	"time"

	"lockfs/raftstore/ids"
)

// Pause promises nothing more in a term until [Table.Resume], and answers for how long what was promised in it lasts at most. It is false
// for a term in which the table was not begun.
func (t *Table) Pause(term ids.Term, now time.Duration) (lasts time.Duration, paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pause(term, now)
}

// Stop is Pause for good: somebody relies on it who was elected in the next term. He need not wait for anything else, as the table was
// begun once all was over that was promised before.
func (t *Table) Stop(term ids.Term, now time.Duration) (lasts time.Duration, resigned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if lasts, resigned = t.pause(term, now); resigned {
		t.stopped = true
	}
	return lasts, resigned
}

// Resume promises again after a Pause, unless somebody relies on it meanwhile or the table is of another term.
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
	for _, h := range t.byID {
		lasts = max(lasts, h.until-now)
	}
	return lasts, true
}

// isOf tells whether the table was begun in a term.
func (t *Table) isOf(term ids.Term) bool { return term != 0 && t.term == term }
