package cluster

import (
	"sync"
	"time"

	"lockfs/cluster/lease"
	"lockfs/raftstore/ids"
)

// termReports records when this node last reported its raft term, in a probe reply or by storing log
// entries of a leader. A quorum of reports backs each lease (package lease). A new leader derives from
// the reports when leases of earlier terms have expired: any majority overlaps with the majority that it
// asks, and no lease lasts longer than lease.Duration after the reports behind it.
//
// Majorities overlap within one configuration and between two consecutive ones. So the reports do not
// count within lease.Duration after a change of the configuration.
type termReports struct {
	inTerm func() ids.Term // the current one of this node
	now    func() time.Duration

	mu            sync.Mutex
	term          ids.Term      // of the last report
	last          time.Duration // report, on the monotonic clock
	earlier       time.Duration // last report of an earlier term
	configChanged time.Duration // last change of the configuration, as far as this node knows
}

// newTermReports is for a node that starts: its earlier reports were before that.
func newTermReports(inTerm func() ids.Term, now func() time.Duration) *termReports {
	started := now()
	return &termReports{inTerm: inTerm, now: now, last: started, earlier: started, configChanged: started}
}

// report returns this node's term, and for how long it has not reported an earlier one. The term is read
// and recorded under one lock: a report of a newer term comes after all reports of earlier terms.
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

// onStoreEntries records a report, because the leader may count the stored entries. The term cannot
// change between the leader's message and this call: raft handles both on one goroutine.
func (r *termReports) onStoreEntries() {
	r.report()
}

// onConfigChange records a change of raft's configuration.
func (r *termReports) onConfigChange() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configChanged = r.now()
}

// leaseExpiry returns when all leases granted before this node's election have expired, on the monotonic
// clock. No voter of a majority has reported an earlier term since silent.
func (r *termReports) leaseExpiry(elected, silent time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now()-r.configChanged < lease.Duration {
		return elected + lease.Duration
	}
	return min(elected, silent) + lease.Duration
}
