package namespace

import (
	"fmt"
	"math"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// judge evaluates the tables together: which names are locks, their holders, and their staleness. It changes
// nothing.
type judge struct{ tables }

// governed is the effective state of a name: the facts of its content under the rule for its path.
type governed struct {
	lockfact.Facts
	hostTimeout time.Duration
	pattern     string       // of the rule; empty: none
	byCreator   bool         // the maker is the holder, whatever the content says
	process     *process     // the holder, if the lock lives as long as an identified process
	machine     sharedString // that has the name Host; empty: unknown
	gone        *staleness   // reason, if the process is known to be gone; nil: it is not
}

// ByProcess reports whether the lock lives as long as a process.
func (g governed) ByProcess() bool { return g.byCreator || g.Facts.ByProcess() }

// atOnce is the due time of immediate actions.
const atOnce = math.MinInt64

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
		// The file existed before its program wrote the number. Or its process ended by itself and left it.
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

// staleNow returns the reason why a lock is stale, marked or not. nil: it is not stale.
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

// factsNow is factsOf for a content written now, on the machine that has the host's name.
func (j *judge) factsNow(m *storepb.Facts) *facts {
	says := factsOf(m)
	if says != nil {
		says.machine = j.hosts.machineOf(says.Host)
	}
	return says
}

// makerOf returns NEED_LINEAGE if the maker of a name would be its holder and the caller has not sent its
// lineage. A nil maker: no rule needs it, or it cannot be watched.
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
			break // no mount sees its parent
		}
		m.heirs = append(m.heirs, processFrom(heir))
	}
	return m, storepb.Code_OK
}

// reachable reports whether the host of a lock has a session and a mount watches the process.
func (j *judge) reachable(g governed) bool {
	h, known := j.hosts.byName.Get(g.Host)
	return known && h.sessions > 0 && (g.process == nil || j.sessions.isWatched(g.Host, g.process.processID))
}

func (j *judge) hasAdvisories(in *inode) bool {
	return (in.kernelLocked || in.otherLocked) && j.locks.Locked(in.ino)
}

// wasLockedAs reports whether the inode has had a lock or a request since it got the name, its last change.
// If the inode was created with that name, released locks count too.
func (j *judge) wasLockedAs(e *entry, in *inode) (locked bool) {
	return (in.kernelLocked || in.otherLocked) && in.version == e.made || j.locks.LockedSince(in.ino, e.acquired)
}

// judgeEntry computes whether an entry is a lock and when it is due, and clears a staleness that is over. The
// entry must not be in a tree.
func (j *judge) judgeEntry(e *entry, in *inode) {
	g := j.govern(e, in)
	if s := e.stale; s != nil && (s.byTime && !g.StaleAt(j.time) || !s.byTime && (!g.ByProcess() || s.ofMaker != g.byCreator)) {
		e.stale = nil
	}
	e.due = j.dueTime(e, in, g)
	ground := j.groundOf(e, in)
	e.lock, e.format, e.ruled = !in.isDir() && ground != isData, g.Format, in.isDir() && ground == byRule
	e.guarded, e.timeout = j.mayRefuse(e, in, g), hostTimeoutOf(g)
}

func (e *entry) sameJudgement(other *entry) bool {
	return e.stale == other.stale && e.due == other.due && e.lock == other.lock && e.format == other.format && e.ruled == other.ruled &&
		e.guarded == other.guarded && e.timeout.equal(other.timeout)
}

// mayRefuse reports whether a guard of a name may refuse something, now or while the lock is being written.
func (j *judge) mayRefuse(e *entry, in *inode, g governed) bool {
	if g.Guard == lockfact.GuardAnyone && in.facts == nil && e.known != nil {
		before := *in
		before.facts = e.known
		g = j.govern(e, &before)
	}
	return g.Guard != lockfact.GuardAnyone
}

func (j *judge) dueTime(e *entry, in *inode, g governed) int64 {
	switch {
	case e.stale != nil && g.OnStale == lockfact.Remove && j.obstacle(in, g, e.stale) == "":
		if in.isDir() && in.ctime > e.stale.since {
			return in.ctime + int64(settling) // a program such as rm -r may be removing it
		}
		return atOnce
	case e.stale != nil:
		return 0
	case g.gone != nil && g.ByProcess():
		return atOnce
	}
	return g.ExpiresAt
}

// hostTimeoutOf returns nil for a lock that waits for its silent host forever, or does not live as long as a
// process.
func hostTimeoutOf(g governed) *hostTimeout {
	if g.hostTimeout <= 0 || !g.ByProcess() || g.process == nil || g.gone != nil {
		return nil
	}
	return &hostTimeout{watcher{g.Host, g.process.bootID.String(), g.process.pidNamespace}, g.hostTimeout}
}

// eachTimedOut visits the locks with an expired host timeout, until visit returns false. It skips all locks
// of a watched pid namespace at once.
func (j *judge) eachTimedOut(now int64, visit func(*entry, *staleness) bool) {
	for going, from := true, (watcher{}); going; {
		var first *entry
		j.tree.timeouts.Ascend(&entry{timeout: &hostTimeout{watcher: from}}, func(e *entry) bool {
			first = e
			return false
		})
		if first == nil {
			return
		}
		going, from = j.visitTimedOut(first, now, visit), first.timeout.next()
	}
}

// visitTimedOut visits the locks of one pid namespace, of which first is the first entry.
func (j *judge) visitTimedOut(first *entry, now int64, visit func(*entry, *staleness) bool) (going bool) {
	of := first.timeout.watcher
	h, known := j.hosts.byName.Get(of.host)
	if !known || h.sessions > 0 && j.sessions.isSeen(of) {
		return true
	}
	going = true
	j.tree.timeouts.Ascend(first, func(e *entry) bool {
		if e.timeout.watcher != of || now-h.since <= int64(e.timeout.after) {
			return false
		}
		if in, found := j.tree.inode(e.ino); found {
			g := j.govern(e, in)
			reason := fmt.Sprintf("its host %s has been silent for more than %v (rule %s)", of.host, e.timeout.after, g.pattern)
			going = visit(e, &staleness{reason: reason, since: j.time, ofMaker: g.byCreator})
		}
		return going
	})
	return going
}
