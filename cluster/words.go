package cluster

import (
	"sync"
	"time"

	"lockfs/cluster/lease"
	"lockfs/raftstore/ids"
)

// words are when this node last said in which term it is, to who asked or by storing what a leader sent. On such words of a majority a
// leader gives leases (package lease), so they tell the next one how long it has to wait: whatever a majority has confirmed, one that is
// asked by the next leader was among them, and nothing was leased on its word that is not over a lease.Duration after it.
//
// That two majorities have somebody in common is so if they are of the same configuration, or of two that follow one another. So where
// the configuration has changed less than that ago, words do not count.
type words struct {
	inTerm func() ids.Term // that this node is in
	now    func() time.Duration

	mu         sync.Mutex
	term       ids.Term      // in which it gave its last word
	last       time.Duration // when, on the monotonic clock
	earlier    time.Duration // when it gave the last one of an earlier term
	configured time.Duration // when the configuration has changed, as far as this node knows
}

// newWords are those of a node that starts: whatever it said before was before that.
func newWords(inTerm func() ids.Term, now func() time.Duration) *words {
	started := now()
	return &words{inTerm: inTerm, now: now, last: started, earlier: started, configured: started}
}

// give answers in which term this node is, and for how long it has not said that it is in an earlier one. The term is read and noted
// at once: whoever hears of a newer term hears of all words that were given before.
func (w *words) give() (term ids.Term, silent time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if term = w.inTerm(); term > w.term {
		w.term, w.earlier = term, w.last
	}
	w.last = now
	return term, now - w.earlier
}

// stored is called when this node stores entries, which says in which term it is: a leader may rely on that it has them. The term cannot
// change between that leader's message and this: raft does both, heartbeats too, on one goroutine.
func (w *words) stored() {
	w.give()
}

// reconfigured is called when raft's configuration has changed.
func (w *words) reconfigured() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.configured = w.now()
}

// leasesOver is when all leases are over that were given before this node was elected, on the monotonic clock, from when a majority has
// given no word in an earlier term.
func (w *words) leasesOver(elected, silent time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now()-w.configured < lease.Duration {
		return elected + lease.Duration
	}
	return min(elected, silent) + lease.Duration
}
