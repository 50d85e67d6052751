package namespace

import (
	"math"
)

// Due reports whether a Tick at that time would change anything.
func (ns *Namespace) Due(now int64) bool {
	next := ns.NextDue()
	due := next <= now && next < math.MaxInt64
	ns.eachTimedOut(now, func(*entry, *staleness) bool {
		due = true
		return false
	})
	return due
}

// NextDue returns the time from which a Tick changes something, host timeouts apart (AwaitsHosts).
// math.MaxInt64: never.
func (ns *Namespace) NextDue() int64 {
	next := int64(math.MaxInt64)
	if e, found := ns.tree.byDue.Min(); found && e.due < math.MaxInt64 {
		next = e.due + 1
	}
	if e, found := ns.tree.byPending.Min(); found {
		next = min(next, e.pending.until)
	}
	return min(next, ns.locks.NextDue(), ns.trust.NextDue())
}

// AwaitsHosts reports whether the timeout of a silent host may expire.
func (ns *Namespace) AwaitsHosts() bool {
	if ns.tree.timeouts.Len() == 0 {
		return false
	}
	silent := false
	ns.hosts.byName.Scan(func(_ string, h *host) bool {
		silent = h.sessions == 0
		return !silent
	})
	return silent
}
