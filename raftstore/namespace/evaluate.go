package namespace

import "lockfs/formats/lockfact"

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
