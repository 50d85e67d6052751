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

func (k *Namespace) acquire(by *storepb.Caller, e *entry, in *inode, how acquisition) *entry {
	e.made, e.token, e.acquired, e.known, e.contentAt = k.index, ids.Token(k.index), k.time, in.facts, k.time
	e.says = k.tree.saysOf(how.says, e.parent)
	if in.manyNames {
		e.maker = nil
	}
	if e.exclusive = how.exclusive; e.exclusive {
		creator := cmp.Or(how.creator, by)
		e.madeOn, e.madeBy = share(creator.GetHost()), creator.GetPid()
	}
	e = k.putJudged(e, in)
	return k.announceSoon(by, e, in, how.done)
}

// succeed gives a taken name to another inode, together with the facts under the inode's former name. The
// token stays if the holder stays, or if the holder is unknown on one side. The name is then not exclusive
// and has another maker.
func (k *Namespace) succeed(by *storepb.Caller, before, incoming *entry, old, in *inode, m *maker) *entry {
	e := *before
	e.ino, e.made, e.stale, e.maker, e.exclusive = in.ino, k.index, incoming.stale.withoutMaker(), m, false
	e.madeOn, e.madeBy, e.contentAt = sharedString{}, 0, k.time
	if in.manyNames {
		e.maker = nil
	}
	if says := asCounted(old, in.content, in.facts); says != in.facts && in.nlink == 1 {
		counted := *in
		counted.facts, counted.gone = says, nil
		k.tree.putInode(&counted)
		return k.hold(by, &e, old, &counted, nil)
	}
	return k.hold(by, &e, old, in, incoming.known)
}

// hold puts an entry with changed content. known are the facts of the present holder.
func (k *Namespace) hold(by *storepb.Caller, e *entry, old, in *inode, known *facts) *entry {
	if (in.unlisted || in.manyNames) && (e.announced || e.pending != nil) {
		return k.lapse(by, e, old, in, known)
	}
	before, wasKnown := *e, e.known != nil
	stolen := wasKnown && known != nil && !e.known.sameHolder(known) && !staysOne(old, in, e.known, known) && (in.unlisted || k.groundOf(e, in) != isData)
	if stolen {
		e.token, e.acquired = ids.Token(k.index), k.time
	}
	if known != nil {
		e.known = known
	}
	if known == nil && wasKnown && (in.manyNames || !mayBegin(e.known.Format, in.content)) {
		if !k.goesOn(e, old, in) {
			return k.lapse(by, e, old, in, nil)
		}
		e.known = nil
	}
	if !stolen || in.unlisted {
		return k.announceSoon(by, k.putJudged(e, in), in, false)
	}
	told := k.announceBefore(&before, old)
	e.pending, e.announced = nil, false
	e = k.putJudged(e, in)
	if told.announced {
		k.emitStolen(told, e, old, in, by)
	}
	return k.announceSoon(by, e, in, told.announced)
}

// lapse puts an entry with changed content after the end of its former lock.
func (k *Namespace) lapse(by *storepb.Caller, e *entry, old, in *inode, known *facts) *entry {
	before := *e
	k.emitReleased(&before, old, by, "its content was replaced", "")
	e.known, e.token, e.acquired = known, ids.Token(k.index), k.time
	e.pending, e.announced = nil, false
	return k.announceSoon(by, k.putJudged(e, in), in, false)
}

// contentChanged updates every name of an inode with new content.
func (k *Namespace) contentChanged(by *storepb.Caller, old, in *inode) {
	for _, e := range k.tree.judgedNames(in) {
		changed := *e
		changed.stale = nil
		if len(old.content) > 0 || len(in.content) > 0 {
			changed.contentAt = k.time
		}
		if in.facts == nil && e.known != nil && k.staleNow(e, k.govern(e, old)) != nil {
			changed.known = e.known.forAnyone()
		}
		k.hold(by, &changed, old, in, in.facts)
	}
}
