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
