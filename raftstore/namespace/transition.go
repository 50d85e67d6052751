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
	e.made, e.token, e.acquired, e.known, e.contentAt = ns.index, ids.Token(ns.index), ns.time, in.facts, ns.time
	e.says = ns.tree.saysOf(how.says, e.parent)
	if in.manyNames {
		e.maker = nil
	}
	if e.exclusive = how.exclusive; e.exclusive {
		creator := cmp.Or(how.creator, by)
		e.madeOn, e.madeBy = share(creator.GetHost()), creator.GetPid()
	}
	e = ns.putJudged(e, in)
	return ns.announceSoon(by, e, in, how.done)
}

// succeed gives a taken name to another inode, together with the facts under the inode's former name. The
// token stays if the holder stays, or if the holder is unknown on one side. The name is then not exclusive
// and has another maker.
func (ns *Namespace) succeed(by *storepb.Caller, before, incoming *entry, old, in *inode, m *maker) *entry {
	e := *before
	e.ino, e.made, e.stale, e.maker, e.exclusive = in.ino, ns.index, incoming.stale.withoutMaker(), m, false
	e.madeOn, e.madeBy, e.contentAt = sharedString{}, 0, ns.time
	if in.manyNames {
		e.maker = nil
	}
	if says := asCounted(old, in.content, in.facts); says != in.facts && in.nlink == 1 {
		counted := *in
		counted.facts, counted.gone = says, nil
		ns.tree.putInode(&counted)
		return ns.hold(by, &e, old, &counted, nil)
	}
	return ns.hold(by, &e, old, in, incoming.known)
}

// hold puts an entry with changed content. known are the facts of the present holder.
func (ns *Namespace) hold(by *storepb.Caller, e *entry, old, in *inode, known *facts) *entry {
	if (in.unlisted || in.manyNames) && (e.announced || e.pending != nil) {
		return ns.lapse(by, e, old, in, known)
	}
	before, wasKnown := *e, e.known != nil
	stolen := wasKnown && known != nil && !e.known.sameHolder(known) && !staysOne(old, in, e.known, known) && (in.unlisted || ns.groundOf(e, in) != isData)
	if stolen {
		e.token, e.acquired = ids.Token(ns.index), ns.time
	}
	if known != nil {
		e.known = known
	}
	if known == nil && wasKnown && (in.manyNames || !mayBegin(e.known.Format, in.content)) {
		if !ns.goesOn(e, old, in) {
			return ns.lapse(by, e, old, in, nil)
		}
		e.known = nil
	}
	if !stolen || in.unlisted {
		return ns.announceSoon(by, ns.putJudged(e, in), in, false)
	}
	told := ns.announceBefore(&before, old)
	e.pending, e.announced = nil, false
	e = ns.putJudged(e, in)
	if told.announced {
		ns.emitStolen(told, e, old, in, by)
	}
	return ns.announceSoon(by, e, in, told.announced)
}

// lapse puts an entry with changed content after the end of its former lock.
func (ns *Namespace) lapse(by *storepb.Caller, e *entry, old, in *inode, known *facts) *entry {
	before := *e
	ns.emitReleased(&before, old, by, "its content was replaced", "")
	e.known, e.token, e.acquired = known, ids.Token(ns.index), ns.time
	e.pending, e.announced = nil, false
	return ns.announceSoon(by, ns.putJudged(e, in), in, false)
}

// contentChanged updates every name of an inode with new content.
func (ns *Namespace) contentChanged(by *storepb.Caller, old, in *inode) {
	for _, e := range ns.tree.judgedNames(in) {
		changed := *e
		changed.stale = nil
		if len(old.content) > 0 || len(in.content) > 0 {
			changed.contentAt = ns.time
		}
		if in.facts == nil && e.known != nil && ns.staleNow(e, ns.govern(e, old)) != nil {
			changed.known = e.known.forAnyone()
		}
		ns.hold(by, &changed, old, in, in.facts)
	}
}
