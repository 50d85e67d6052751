package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

type moving struct {
	maker     *maker // of the new name
	exclusive bool   // the new name was certainly free
	says      storepb.NameSays
	creator   *storepb.Caller // of the new name; nil: the caller
	reason    string
}

// move gives source's inode the target's name. A replaced name keeps its place in listings.
func (k *keeper) move(by *storepb.Caller, source, target *entry, moved, replaced *inode, how *moving) (made *entry) {
	from, to := k.placeFor(source, moved), k.placeFor(target, moved)
	if source.announced {
		k.emitReleased(source, moved, by, how.reason, "")
	}
	k.tree.deleteEntry(source)
	moved = k.reparent(moved, target.parent)
	if replaced != nil {
		made = k.succeed(by, target, source, replaced, moved, how.maker)
	} else {
		free := &entry{parent: target.parent, name: target.name, ino: moved.ino, cookie: k.tree.newCookie(), maker: how.maker}
		free.stale = source.stale.withoutMaker()
		made = k.acquire(by, free, moved, acquisition{exclusive: how.exclusive, says: how.says, creator: how.creator, done: true})
	}
	if moved.isDir() {
		k.judgeMoved(moved, from, to)
	}
	subdirs := 0
	if moved.isDir() {
		subdirs = 1
	}
	k.touchDir(source.parent, -subdirs)
	k.touchDir(target.parent, subdirs)
	return made
}

func (k *keeper) reparent(in *inode, parent ids.Inode) *inode {
	changed := *in
	changed.ctime, changed.changed = k.time, k.index
	if in.isDir() {
		changed.parent = parent
	}
	k.tree.putInode(&changed)
	return &changed
}
