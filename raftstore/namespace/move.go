package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

type moveOptions struct {
	maker     *creator // of the new name
	exclusive bool     // the new name was certainly free
	says      storepb.NameSays
	creator   *storepb.Caller // of the new name; nil: the caller
	reason    string
}

// move gives source's inode the target's name. A replaced name keeps its place in listings.
func (ns *Namespace) move(by *storepb.Caller, source, target *entry, moved, replaced *inode, how *moveOptions) (made *entry) {
	from, to := ns.pathForRules(source, moved), ns.pathForRules(target, moved)
	if source.announced {
		ns.emitReleased(source, moved, by, how.reason, "")
	}
	ns.tree.deleteEntry(source)
	moved = ns.reparent(moved, target.parent)
	if replaced != nil {
		made = ns.transferHolder(by, target, source, replaced, moved, how.maker)
	} else {
		free := &entry{parent: target.parent, name: target.name, ino: moved.ino, cookie: ns.tree.newCookie(), creator: how.maker}
		free.stale = source.stale.withoutCreator()
		made = ns.acquire(by, free, moved, acquisition{exclusive: how.exclusive, says: how.says, creator: how.creator, done: true})
	}
	if moved.isDir() {
		ns.reevaluateMoved(moved, from, to)
	}
	subdirs := 0
	if moved.isDir() {
		subdirs = 1
	}
	ns.touchDir(source.parent, -subdirs)
	ns.touchDir(target.parent, subdirs)
	return made
}

func (ns *Namespace) reparent(in *inode, parent ids.Inode) *inode {
	changed := *in
	changed.ctime, changed.changed = ns.time, ns.index
	if in.isDir() {
		changed.parent = parent
	}
	ns.tree.putInode(&changed)
	return &changed
}
