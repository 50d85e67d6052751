package cluster

import (
	"sync"
	"time"

	"lockfs/cluster/lease"
	"lockfs/raftstore/ids"
)

// termReports are when this node last said in which term it is, to who asked or by storing what a leader sent. On such words of a majority a
// leader gives leases (package lease), so they tell the next one how long it has to wait: whatever a majority has confirmed, one that is
// asked by the next leader was among them, and nothing was leased on its word that is not over a lease.Duration after it.
//
// That two majorities have somebody in common is so if they are of the same configuration, or of two that follow one another. So where
// the configuration has changed less than that ago, words do not count.
type termReports struct {
	inTerm func() ids.Term // that this node is in
	now    func() time.Duration

	mu            sync.Mutex
	term          ids.Term      // in which it gave its last word
	last          time.Duration // when, on the monotonic clock
	earlier       time.Duration // when it gave the last one of an earlier term
	configChanged time.Duration // when the configuration has changed, as far as this node knows
}

// newTermReports are those of a node that starts: whatever it said before was before that.
func newTermReports(inTerm func() ids.Term, now func() time.Duration) *termReports {
	started := now()
	return &termReports{inTerm: inTerm, now: now, last: started, earlier: started, configChanged: started}
}

// report answers in which term this node is, and for how long it has not said that it is in an earlier one. The term is read and noted
// at once: whoever hears of a newer term hears of all words that were given before.
func (r *termReports) report() (term ids.Term, silent time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if term = r.inTerm(); term > r.term {
		r.term, r.earlier = term, r.last
	}
	r.last = now
	return term, now - r.earlier
}

// onStoreEntries is called when this node stores entries, which says in which term it is: a leader may rely on that it has them. The term cannot
// change between that leader's message and this: raft does both, heartbeats too, on one goroutine.
func (r *termReports) onStoreEntries() {
	r.report()
}

// onConfigChange is called when raft's configuration has changed.
func (r *termReports) onConfigChange() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configChanged = r.now()
}

// leaseExpiry is when all leases are over that were given before this node was elected, on the monotonic clock, from when a majority has
// given no word in an earlier term.
func (r *termReports) leaseExpiry(elected, silent time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now()-r.configChanged < lease.Duration {
		return elected + lease.Duration
	}
	return min(elected, silent) + lease.Duration
}
