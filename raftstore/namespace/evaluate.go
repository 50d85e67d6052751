package namespace

import "lockfs/formats/lockfact"

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
