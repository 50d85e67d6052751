package namespace

import (
	"fmt"
	"math"
)

// Due tells whether a Tick at that time would change anything.
func (ns *Namespace) Due(now int64) bool {
	next := ns.NextDue()
	due := next <= now && next < math.MaxInt64
	ns.eachImpatient(now, func(*entry, *staleness) { due = true })
	return due
}

// NextDue is the time from which on a Tick changes something, apart from the patience with silent hosts (AwaitsHosts);
// math.MaxInt64 if nothing is under way.
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

// AwaitsHosts tells whether patience with some silent host may come to an end.
func (ns *Namespace) AwaitsHosts() bool {
	if !ns.rules.hasHostTimeouts() {
		return false
	}
	silent := false
	ns.hosts.byName.Scan(func(_ string, h *host) bool {
		silent = h.sessions == 0
		return !silent
	})
	return silent
}

// namesUnseen lists the names of what processes of a host hold or have made that are not watched.
func (j *judge) namesUnseen(name string) []*entry {
	watched := make(map[processID]bool) // by boot and namespace
	isWatched := func(p processID) bool {
		where := processID{bootID: p.bootID, pidNamespace: p.pidNamespace}
		is, known := watched[where]
		if !known {
			is = j.sessions.isWatched(name, where)
			watched[where] = is
		}
		return is
	}
	var names []*entry
	for _, held := range j.tree.holdings.heldOn(name, nil) {
		if !isWatched(held.says.process.processID) {
			names = append(names, j.tree.namesOf(held.ino)...)
		}
	}
	for _, m := range j.tree.holdings.madeOn(name, nil) {
		if e, found := j.tree.entry(m.parent, []byte(m.name)); found && !isWatched(m.by) {
			names = append(names, e)
		}
	}
	return names
}

// eachImpatient visits the locks whose rule does not wait any longer for their silent host.
func (j *judge) eachImpatient(now int64, visit func(*entry, *staleness)) {
	if !j.rules.hasHostTimeouts() {
		return
	}
	j.hosts.byName.Scan(func(name string, h *host) bool {
		for _, e := range j.namesUnseen(name) {
			in, found := j.tree.inode(e.ino)
			if !found {
				continue
			}
			g := j.govern(e, in)
			// A file that names a process of the host may be held by its maker on another one, and the other way round.
			isTheirs := g.ByProcess() && g.Host == name && !j.reachable(g)
			if e.stale == nil && isTheirs && g.hostTimeout > 0 && now-h.since > int64(g.hostTimeout) {
				reason := fmt.Sprintf("its host %s has been silent for more than %v (rule %s)", name, g.hostTimeout, g.pattern)
				visit(e, &staleness{reason: reason, since: j.time, ofMaker: g.byCreator})
			}
		}
		return true
	})
}
