package namespace

import "lockfs/formats/lockfact"

// judgeEntry works out whether an entry is a lock and when something is due with it, and takes back that it is stale if it is not
// any more. The entry must not be in a tree.
func (j *judge) judgeEntry(e *entry, in *inode) {
	g := j.govern(e, in)
	if s := e.stale; s != nil && (s.byTime && !g.StaleAt(j.time) || !s.byTime && (!g.ByProcess() || s.ofMaker != g.byCreator)) {
		e.stale = nil
	}
	e.due = j.dueTime(e, in, g)
	e.lock, e.format = !in.isDir() && j.groundOf(e, in) != isData, g.Format
}

func (j *judge) dueTime(e *entry, in *inode, g governed) int64 {
	switch {
	case e.stale != nil && g.OnStale == lockfact.Remove && j.obstacle(in, g, e.stale) == "":
		if in.isDir() && in.ctime > e.stale.since {
			return in.ctime + int64(settling) // a program may be removing it, such as rm -r
		}
		return atOnce
	case e.stale != nil:
		return 0
	case g.gone != nil && g.ByProcess():
		return atOnce
	}
	return g.ExpiresAt
}
