package namespace

import (
	"cmp"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// acquisition says how a name was created.
type acquisition struct {
	exclusive bool // the name was certainly free
	says      storepb.NameSays
	creator   *storepb.Caller // nil: the caller
	done      bool            // usually no further step belongs to the same acquisition
}

func (ns *Namespace) acquire(by *storepb.Caller, e *entry, in *inode, how acquisition) *entry {
	e.createdAt, e.token, e.acquired, e.known, e.contentAt = ns.index, ids.Token(ns.index), ns.time, in.facts, ns.time
	e.says = ns.tree.nameEvidenceOf(how.says, e.parent)
	if in.manyNames {
		e.creator = nil
	}
	if e.exclusive = how.exclusive; e.exclusive {
		creator := cmp.Or(how.creator, by)
		e.creatorHost, e.creatorPID = intern(creator.GetHost()), creator.GetPid()
	}
	e = ns.putEntryEvaluated(e, in)
	return ns.queueEvent(by, e, in, how.done)
}

// transferHolder gives a taken name to another inode, together with the facts under the inode's former name.
// The token stays if the holder stays, or if the holder is unknown on one side. The name is then not
// exclusive and has another creator.
func (ns *Namespace) transferHolder(by *storepb.Caller, before, incoming *entry, old, in *inode, m *creator) *entry {
	e := *before
	e.ino, e.createdAt, e.stale, e.creator, e.exclusive = in.ino, ns.index, incoming.stale.withoutCreator(), m, false
	e.creatorHost, e.creatorPID, e.contentAt = internedString{}, 0, ns.time
	if in.manyNames {
		e.creator = nil
	}
	if says := factsUnlessCounter(old, in.content, in.facts); says != in.facts && in.nlink == 1 {
		counted := *in
		counted.facts, counted.gone = says, nil
		ns.tree.putInode(&counted)
		return ns.updateHolder(by, &e, old, &counted, nil)
	}
	return ns.updateHolder(by, &e, old, in, incoming.known)
}

// updateHolder puts an entry with changed content. known are the facts of the present holder.
func (ns *Namespace) updateHolder(by *storepb.Caller, e *entry, old, in *inode, known *facts) *entry {
	if (in.unlisted || in.manyNames) && (e.announced || e.pending != nil) {
		return ns.dropHolder(by, e, old, in, known)
	}
	before, wasKnown := *e, e.known != nil
	stolen := wasKnown && known != nil && !e.known.sameHolder(known) && !isSameHolder(old, in, e.known, known) && (in.unlisted || ns.whyLock(e, in) != notLock)
	if stolen {
		e.token, e.acquired = ids.Token(ns.index), ns.time
	}
	if known != nil {
		e.known = known
	}
	if known == nil && wasKnown && (in.manyNames || !mayBeIncomplete(e.known.Format, in.content)) {
		if !ns.isExtended(e, old, in) {
			return ns.dropHolder(by, e, old, in, nil)
		}
		e.known = nil
	}
	if !stolen || in.unlisted {
		return ns.queueEvent(by, ns.putEntryEvaluated(e, in), in, false)
	}
	told := ns.emitPending(&before, old)
	e.pending, e.announced = nil, false
	e = ns.putEntryEvaluated(e, in)
	if told.announced {
		ns.emitStolen(told, e, old, in, by)
	}
	return ns.queueEvent(by, e, in, told.announced)
}

// dropHolder puts an entry with changed content after the end of its former lock.
func (ns *Namespace) dropHolder(by *storepb.Caller, e *entry, old, in *inode, known *facts) *entry {
	before := *e
	ns.emitReleased(&before, old, by, "its content was replaced", "")
	e.known, e.token, e.acquired = known, ids.Token(ns.index), ns.time
	e.pending, e.announced = nil, false
	return ns.queueEvent(by, ns.putEntryEvaluated(e, in), in, false)
}

// contentChanged updates every name of an inode with new content.
func (ns *Namespace) contentChanged(by *storepb.Caller, old, in *inode) {
	for _, e := range ns.tree.evaluatedNames(in) {
		changed := *e
		changed.stale = nil
		if len(old.content) > 0 || len(in.content) > 0 {
			changed.contentAt = ns.time
		}
		if in.facts == nil && e.known != nil && ns.staleNow(e, ns.effective(e, old)) != nil {
			changed.known = e.known.forAnyone()
		}
		ns.updateHolder(by, &changed, old, in, in.facts)
	}
}
