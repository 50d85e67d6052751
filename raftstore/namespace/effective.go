package namespace

import (
	"fmt"
	"math"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// evaluator evaluates the tables together: which names are locks, their holders, and their staleness. It
// changes nothing.
type evaluator struct{ state }

// effectiveState is the effective state of a name: the facts of its content under the rule for its path.
type effectiveState struct {
	lockfact.Facts
	hostTimeout time.Duration
	pattern     string         // of the rule; empty: none
	byCreator   bool           // the creator is the holder, whatever the content says
	process     *process       // the holder, if the lock lives as long as an identified process
	machine     internedString // that has the name Host; empty: unknown
	gone        *staleness     // reason, if the process is known to be gone; nil: it is not
}

// ByProcess reports whether the lock lives as long as a process.
func (g effectiveState) ByProcess() bool { return g.byCreator || g.Facts.ByProcess() }

// immediately is the due time of immediate actions.
const immediately = math.MinInt64

func (j *evaluator) ruleFor(e *entry) *storepb.Rule {
	if !j.rules.are() {
		return nil
	}
	return j.rules.forPath(j.tree.path(e))
}

func (j *evaluator) effective(e *entry, in *inode) effectiveState {
	g := effectiveState{Facts: lockfact.NoneFacts(in.host.String())}
	if in.kernelLocked || in.manyNames {
		return g
	}
	if j.factsApply(e, in) {
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
	if r.Holder == lockfact.HolderCreator && e.creator != nil {
		g.Facts, g.byCreator = e.creator.applyRule(g.Facts, r), true
		g.process, g.machine, g.gone = e.creator.process, e.creator.machine, e.creator.gone
	}
	return g
}

// staleNow returns the reason why a lock is stale, marked or not. nil: it is not stale.
func (j *evaluator) staleNow(e *entry, g effectiveState) *staleness {
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
func (j *evaluator) factsNow(m *storepb.Facts) *facts {
	says := factsOf(m)
	if says != nil {
		says.machine = j.hosts.machineOf(says.Host)
	}
	return says
}

// creatorOf returns NEED_LINEAGE if the creator of a name would be its holder and the caller has not sent its
// lineage. A nil creator: no rule needs it, or it cannot be watched.
func (j *evaluator) creatorOf(by *storepb.Caller, e *entry) (m *creator, code storepb.Code) {
	rule := j.ruleFor(e)
	if lockRule(rule).Holder != lockfact.HolderCreator {
		return nil, storepb.Code_OK
	}
	line := by.GetLineage()
	if len(line) == 0 {
		return nil, storepb.Code_NEED_LINEAGE
	}
	if !isCreator(line[0]) {
		return nil, storepb.Code_OK
	}
	m = &creator{process: processFrom(line[0]), host: intern(by.GetHost()), machine: j.hosts.machineOf(by.GetHost()), since: j.time}
	for _, heir := range line[1:max(1, min(len(line), int(by.GetFamily()), 1+maxHeirs))] {
		if !isCreator(heir) {
			break // no mount sees its parent
		}
		m.heirs = append(m.heirs, processFrom(heir))
	}
	return m, storepb.Code_OK
}

// reachable reports whether the host of a lock has a session and a mount watches the process.
func (j *evaluator) reachable(g effectiveState) bool {
	h, known := j.hosts.byName.Get(g.Host)
	return known && h.sessions > 0 && (g.process == nil || j.sessions.isWatched(g.Host, g.process.processID))
}

func (j *evaluator) hasAdvisories(in *inode) bool {
	return (in.kernelLocked || in.otherLocked) && j.locks.Locked(in.ino)
}

// wasLockedAs reports whether the inode has had a lock or a request since it got the name, its last change.
// If the inode was created with that name, released locks count too.
func (j *evaluator) wasLockedAs(e *entry, in *inode) (locked bool) {
	return (in.kernelLocked || in.otherLocked) && in.version == e.createdAt || j.locks.LockedSince(in.ino, e.acquired)
}

// evaluate computes whether an entry is a lock and when it is due, and clears a staleness that is over. The
// entry must not be in a tree.
func (j *evaluator) evaluate(e *entry, in *inode) {
	g := j.effective(e, in)
	if s := e.stale; s != nil && (s.byTime && !g.StaleAt(j.time) || !s.byTime && (!g.ByProcess() || s.ofCreator != g.byCreator)) {
		e.stale = nil
	}
	e.due = j.dueTime(e, in, g)
	ground := j.whyLock(e, in)
	e.lock, e.format, e.ruled = !in.isDir() && ground != notLock, g.Format, in.isDir() && ground == byRule
	e.guarded, e.timeout = j.mayRefuse(e, in, g), hostTimeoutOf(g)
}

func (e *entry) sameEvaluation(other *entry) bool {
	return e.stale == other.stale && e.due == other.due && e.lock == other.lock && e.format == other.format && e.ruled == other.ruled &&
		e.guarded == other.guarded && e.timeout.equal(other.timeout)
}

// mayRefuse reports whether a guard of a name may refuse something, now or while the lock is being written.
func (j *evaluator) mayRefuse(e *entry, in *inode, g effectiveState) bool {
	if g.Guard == lockfact.GuardAnyone && in.facts == nil && e.known != nil {
		before := *in
		before.facts = e.known
		g = j.effective(e, &before)
	}
	return g.Guard != lockfact.GuardAnyone
}

func (j *evaluator) dueTime(e *entry, in *inode, g effectiveState) int64 {
	switch {
	case e.stale != nil && g.OnStale == lockfact.Remove && j.obstacle(in, g, e.stale) == "":
		if in.isDir() && in.ctime > e.stale.since {
			return in.ctime + int64(contentGrace) // a program such as rm -r may be removing it
		}
		return immediately
	case e.stale != nil:
		return 0
	case g.gone != nil && g.ByProcess():
		return immediately
	}
	return g.ExpiresAt
}

// hostTimeoutOf returns nil for a lock that waits for its silent host forever, or does not live as long as a
// process.
func hostTimeoutOf(g effectiveState) *hostTimeout {
	if g.hostTimeout <= 0 || !g.ByProcess() || g.process == nil || g.gone != nil {
		return nil
	}
	return &hostTimeout{watcher{g.Host, g.process.bootID.String(), g.process.pidNamespace}, g.hostTimeout}
}

// eachTimedOut visits the locks with an expired host timeout, until visit returns false. It skips all locks
// of a watched pid namespace at once.
func (j *evaluator) eachTimedOut(now int64, visit func(*entry, *staleness) bool) {
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
func (j *evaluator) visitTimedOut(first *entry, now int64, visit func(*entry, *staleness) bool) (going bool) {
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
			g := j.effective(e, in)
			reason := fmt.Sprintf("its host %s has been silent for more than %v (rule %s)", of.host, e.timeout.after, g.pattern)
			going = visit(e, &staleness{reason: reason, since: j.time, ofCreator: g.byCreator})
		}
		return going
	})
	return going
}
