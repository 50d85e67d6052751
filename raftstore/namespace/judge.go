package namespace

import (
	"fmt"
	"math"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// judge says what the tables mean together: what is a lock, whose, and whether it is stale. It changes nothing.
type judge struct{ tables }

// governed is what counts for a name: what its content says, under the rule for its path.
type governed struct {
	lockfact.Facts
	hostTimeout time.Duration
	pattern     string       // of the rule; empty: there is none
	byCreator   bool         // the process that made the name is the holder, whatever the content says
	process     *process     // the holder, if the lock lives as long as it does and it was identified
	machine     sharedString // that Host is the name of; empty: it is not known
	gone        *staleness   // how the process is known to be gone; nil: it is not
}

// ByProcess reports whether the lock lives as long as a process.
func (g governed) ByProcess() bool { return g.byCreator || g.Facts.ByProcess() }

// atOnce is when lockfs does what no time has to pass for.
const atOnce = math.MinInt64

// ruleFor answers the rule for a name; nil: there is none.
func (j *judge) ruleFor(e *entry) *storepb.Rule {
	if !j.rules.are() {
		return nil
	}
	return j.rules.forPath(j.tree.path(e))
}

func (j *judge) govern(e *entry, in *inode) governed {
	g := governed{Facts: lockfact.NoneFacts(in.host.String())}
	if in.kernelLocked || in.manyNames {
		return g
	}
	if j.counts(e, in) {
		g.Facts, g.process, g.machine, g.gone = in.facts.Facts, in.facts.process, in.facts.machine, in.gone
	}
	if g.Format == lockfact.PID && (!e.exclusive || g.gone != nil && !g.gone.byCrash) {
		// The file was there before, for a program to write its number to; or its process ended by itself and left it.
		g.OnStale = lockfact.Keep
	}
	rule := j.ruleOn(e, in)
	if rule == nil {
		return g
	}
	r := lockRule(rule)
	g.Facts, g.hostTimeout, g.pattern = r.Govern(g.Facts, in.mtime), r.HostTimeout, rule.GetPattern()
	if g.Format == lockfact.None {
		g.process, g.gone = nil, nil
	}
	if r.Holder == lockfact.HolderCreator && e.maker != nil {
		g.Facts, g.byCreator = e.maker.govern(g.Facts, r), true
		g.process, g.machine, g.gone = e.maker.process, e.maker.machine, e.maker.gone
	}
	return g
}

// staleNow says why a lock is stale, also of one that is only waiting to be marked. Nil: it is not.
func (j *judge) staleNow(e *entry, g governed) *staleness {
	switch {
	case e.stale != nil:
		return e.stale
	case g.gone != nil && g.ByProcess():
		return g.gone
	case g.StaleAt(j.time):
		reason := fmt.Sprintf("its time was over at %s", timestamp(g.ExpiresAt))
		return &staleness{reason: reason, since: j.time, byTime: true}
	}
	return nil
}

// factsNow is factsOf for what somebody writes now, on the machine that has the name of the host.
func (j *judge) factsNow(m *storepb.Facts) *facts {
	says := factsOf(m)
	if says != nil {
		says.machine = j.hosts.machineOf(says.Host)
	}
	return says
}

// makerOf answers NEED_LINEAGE if the maker of a name would be its holder and the caller has not told who it
// is. Nil: nobody wants to know, or nobody can see it.
func (j *judge) makerOf(by *storepb.Caller, e *entry) (m *maker, code storepb.Code) {
	rule := j.ruleFor(e)
	if lockRule(rule).Holder != lockfact.HolderCreator {
		return nil, storepb.Code_OK
	}
	line := by.GetLineage()
	if len(line) == 0 {
		return nil, storepb.Code_NEED_LINEAGE
	}
	if !isMaker(line[0]) {
		return nil, storepb.Code_OK
	}
	m = &maker{process: processFrom(line[0]), host: share(by.GetHost()), machine: j.hosts.machineOf(by.GetHost()), since: j.time}
	for _, heir := range line[1:max(1, min(len(line), int(by.GetFamily()), 1+maxHeirs))] {
		if !isMaker(heir) {
			break // whose parent nobody can see
		}
		m.heirs = append(m.heirs, processFrom(heir))
	}
	return m, storepb.Code_OK
}

// reachable tells whether the host of a lock has a session, and its process is watched.
func (j *judge) reachable(g governed) bool {
	h, known := j.hosts.byName.Get(g.Host)
	return known && h.sessions > 0 && (g.process == nil || j.sessions.isWatched(g.Host, g.process.processID))
}

// hasAdvisories tells whether somebody has an advisory lock of a file now, or waits for one.
func (j *judge) hasAdvisories(in *inode) bool {
	return (in.kernelLocked || in.otherLocked) && j.locks.Locked(in.ino)
}

// wasLockedAs tells whether somebody has locked an inode, or asked for that, since it got the name that is its last change. Where
// it came to be with that name, locks that were released count too.
func (j *judge) wasLockedAs(e *entry, in *inode) (locked bool) {
	return (in.kernelLocked || in.otherLocked) && in.version == e.made || j.locks.LockedSince(in.ino, e.acquired)
}
