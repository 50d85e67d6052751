package namespace

import (
	"fmt"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// describe returns everything known of a name, as a removal would see it now.
func (r queryEngine) describe(e *entry, in *inode) *storepb.Lock {
	g := r.guardOf(e, in)
	lock := &storepb.Lock{
		Parent: uint64(e.parent), Name: []byte(e.name), Path: []byte(r.tree.path(e)), Token: uint64(e.token), Acquired: e.acquired,
		State: string(lockfact.Held), Facts: FactsMessage(g.Facts), Attr: in.attr(), Rule: g.pattern, ByCreator: g.byCreator,
		Because: r.describeReason(e, in), Exclusive: e.exclusive, MadeOn: e.creatorHost.String(), MadeBy: e.creatorPID,
	}
	if e.exclusive {
		lock.Evidence = r.evidence(e, in).String()
	}
	lock.Facts.Process = g.process.message()
	if in.facts != nil && g.Format != lockfact.None {
		lock.Facts.Tag, lock.Facts.Machine = in.facts.tag, in.facts.machine.String()
	}
	stale := r.staleNow(e, g)
	switch {
	case stale != nil:
		lock.State, lock.Reason, lock.Since = string(lockfact.Stale), stale.reason, stale.since
		lock.StaysBecause = r.staysBecause(e, in, g)
		return lock
	case g.ByProcess() && !r.reachable(g):
		lock.State, lock.Reason = string(lockfact.Unreachable), fmt.Sprintf("host %s has no mount, so its processes cannot be seen", g.Host)
		if h, known := r.hosts.byName.Get(g.Host); known {
			lock.Since = h.since
			if h.sessions > 0 {
				lock.Reason = fmt.Sprintf("no mount of host %s sees its process", g.Host)
			}
		}
	}
	lock.Remover = g.remover()
	return lock
}
