package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// processesGone records the end of processes and marks their locks. Other names may become locks of these
// processes later, by another rule. The first recorded end of a process counts.
func (ns *Namespace) processesGone(lost []heldInode, reason string, byCrash bool) {
	why := &staleness{reason: reason, since: ns.time, byCrash: byCrash}
	for _, h := range lost {
		in, found := ns.tree.inode(h.ino)
		if !found || in.gone != nil {
			continue
		}
		bereft := *in
		bereft.gone = why
		ns.tree.putInode(&bereft)
		for _, e := range ns.tree.namesOf(h.ino) {
			if g := ns.effective(e, &bereft); e.stale == nil && g.gone != nil && g.ByProcess() {
				ns.markStale(e, g.gone)
			} else {
				ns.reevaluate(e) // it may stay now, or wait for its silent host no more
			}
		}
	}
}

func (ns *Namespace) creatorGone(lost []createdName, ended int64, reason string) {
	why := &staleness{reason: reason, since: ns.time, ofCreator: true}
	for _, m := range lost {
		e, found := ns.tree.entry(m.parent, []byte(m.name))
		if !found || e.creator == nil {
			continue
		}
		in, found := ns.tree.inode(e.ino)
		if !found {
			continue
		}
		changed := *e
		changed.creator = e.creator.withoutProcess(m.by, ended, why)
		if changed.creator.gone != nil && !in.isDir() && ns.ruleOn(e, in) == nil {
			changed.creator = nil // it created data: a later lock of this name belongs to another program
		}
		e = ns.putEntryEvaluated(&changed, in)
		if g := ns.effective(e, in); g.byCreator && g.gone != nil {
			ns.markStale(e, g.gone)
		}
	}
}

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
		how := end{}
		if i < len(op.GetEnds()) {
			how = endFrom(op.GetEnds()[i])
		}
		p, reason := processFrom(m), how.reason(m.GetPid(), s.host)
		ns.processesGone(ns.tree.byProcess.heldOn(s.host, p), reason, how.byCrash())
		ns.creatorGone(ns.tree.byProcess.createdOn(s.host, &p.processID), ended, reason)
	}
	return ok()
}
