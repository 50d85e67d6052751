package namespace

import (
	"fmt"
	"math"

	"lockfs/raftstore/storepb"
)

// loseProcesses notes that processes are gone, and marks what they hold. Names that are no locks of theirs
// by the present rules may be later.
func (ns *Namespace) loseProcesses(lost []held, reason string) {
	why := &staleness{reason: reason, since: ns.time}
	for _, h := range lost {
		in, found := ns.inodes.Get(h.ino)
		if !found {
			continue
		}
		bereft := *in
		bereft.gone = why
		ns.putInode(&bereft)
		for _, e := range ns.namesOf(h.ino) {
			if g := ns.govern(e, &bereft); g.gone != nil && g.ByProcess() {
				ns.markStale(e, g.gone)
			}
		}
	}
}

// processGone is what the mount of a host has seen.
func (ns *Namespace) processGone(session uint64, op *storepb.ProcessGone) *storepb.Result {
	s, found := ns.sessions.Get(session)
	if !found {
		return fail(storepb.Code_SESSION_UNKNOWN)
	}
	for i, m := range op.GetProcesses() {
		if m == nil || m.GetBootId() != s.bootID {
			continue
		}
		ended := int64(0)
		if i < len(op.GetEnded()) {
			ended = op.GetEnded()[i]
		}
		p, reason := processFrom(m), fmt.Sprintf("its process %d on %s is gone", m.GetPid(), s.host)
		ns.loseProcesses(ns.heldOn(s.host, p), reason)
		ns.bereave(ns.madeOn(s.host, &p.processID), ended, reason)
	}
	return ok()
}

// namesUnseen lists the names of what processes of a host hold or have made that are not watched.
func (ns *Namespace) namesUnseen(name string) []*entry {
	watched := make(map[processID]bool) // by boot and namespace
	isWatched := func(p processID) bool {
		where := processID{bootID: p.bootID, pidNamespace: p.pidNamespace}
		is, known := watched[where]
		if !known {
			is = ns.isWatched(name, where)
			watched[where] = is
		}
		return is
	}
	var names []*entry
	for _, held := range ns.heldOn(name, nil) {
		if !isWatched(held.says.process.processID) {
			names = append(names, ns.namesOf(held.ino)...)
		}
	}
	for _, m := range ns.madeOn(name, nil) {
		if e, found := ns.entry(m.parent, []byte(m.name)); found && !isWatched(m.by) {
			names = append(names, e)
		}
	}
	return names
}

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
	if e, found := ns.byDue.Min(); found && e.due < math.MaxInt64 {
		next = e.due + 1
	}
	if e, found := ns.byPending.Min(); found {
		next = min(next, e.pending.until)
	}
	return min(next, ns.locks.NextDue())
}

// AwaitsHosts tells whether patience with some silent host may come to an end.
func (ns *Namespace) AwaitsHosts() bool {
	if !ns.hasHostTimeouts() {
		return false
	}
	silent := false
	ns.hosts.Scan(func(_ string, h *host) bool {
		silent = h.sessions == 0
		return !silent
	})
	return silent
}

// tick ends the patience with silent hosts; the rest happens with every command.
func (ns *Namespace) tick() *storepb.Result {
	type lost struct {
		e   *entry
		why *staleness
	}
	var found []lost
	ns.eachImpatient(ns.time, func(e *entry, why *staleness) { found = append(found, lost{e, why}) })
	for _, l := range found {
		ns.markStale(l.e, l.why)
	}
	return ok()
}

// eachImpatient visits the locks whose rule does not wait any longer for their silent host.
func (ns *Namespace) eachImpatient(now int64, visit func(*entry, *staleness)) {
	if !ns.hasHostTimeouts() {
		return
	}
	ns.hosts.Scan(func(name string, h *host) bool {
		for _, e := range ns.namesUnseen(name) {
			in, found := ns.inodes.Get(e.ino)
			if !found {
				continue
			}
			g := ns.govern(e, in)
			// A file that names a process of the host may be held by its maker on another one, and the other way round.
			isTheirs := g.ByProcess() && g.Host == name && !ns.reachable(g)
			if e.stale == nil && isTheirs && g.hostTimeout > 0 && now-h.since > int64(g.hostTimeout) {
				reason := fmt.Sprintf("its host %s has been silent for more than %v (rule %s)", name, g.hostTimeout, g.pattern)
				visit(e, &staleness{reason: reason, since: ns.time, ofMaker: g.byCreator})
			}
		}
		return true
	})
}
