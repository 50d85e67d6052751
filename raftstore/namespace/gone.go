package namespace

import (
	"fmt"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// loseProcesses notes that processes are gone, and marks what they hold. Names that are no locks of theirs
// by the present rules may be later.
func (k *keeper) loseProcesses(lost []held, reason string) {
	why := &staleness{reason: reason, since: k.time}
	for _, h := range lost {
		in, found := k.tree.inode(h.ino)
		if !found {
			continue
		}
		bereft := *in
		bereft.gone = why
		k.tree.putInode(&bereft)
		for _, e := range k.tree.namesOf(h.ino) {
			if g := k.govern(e, &bereft); g.gone != nil && g.ByProcess() {
				k.markStale(e, g.gone)
			}
		}
	}
}

// bereave notes that a process is gone that made names.
func (k *keeper) bereave(lost []made, ended int64, reason string) {
	why := &staleness{reason: reason, since: k.time, ofMaker: true}
	for _, m := range lost {
		e, found := k.tree.entry(m.parent, []byte(m.name))
		if !found || e.maker == nil {
			continue
		}
		in, found := k.tree.inode(e.ino)
		if !found {
			continue
		}
		changed := *e
		changed.maker = e.maker.without(m.by, ended, why)
		e = k.putJudged(&changed, in)
		if g := k.govern(e, in); g.gone != nil {
			k.markStale(e, g.gone)
		}
	}
}

// processGone is what the mount of a host has seen.
func (ns *Namespace) processGone(session ids.Session, op *storepb.ProcessGone) *storepb.Result {
	s, found := ns.sessions.byID.Get(session)
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
		ns.loseProcesses(ns.tree.holdings.heldOn(s.host, p), reason)
		ns.bereave(ns.tree.holdings.madeOn(s.host, &p.processID), ended, reason)
	}
	return ok()
}
