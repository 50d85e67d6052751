package namespace

import "lockfs/raftstore/ids"

// removeEntry takes a name away. It answers the inode's number if that was its last one.
func (k *keeper) removeEntry(session ids.Session, e *entry, in *inode) (removed ids.Inode) {
	k.tree.deleteEntry(e)
	subdirs := 0
	if in.isDir() {
		subdirs = -1
	}
	k.touchDir(e.parent, subdirs)
	removed = k.dropLink(session, in)
	if removed != 0 {
		k.removed = append(k.removed, Removal{Session: session, Parent: e.parent, Name: e.name, Ino: removed})
	}
	return removed
}

// dropLink counts a name less; an inode without one becomes an orphan and its number is the answer.
func (k *keeper) dropLink(session ids.Session, in *inode) (removed ids.Inode) {
	links := -1
	if in.isDir() {
		links = -int(in.nlink)
	}
	in = k.changeLinks(in, links)
	if in.nlink > 0 {
		return 0
	}
	k.addOrphan(session, in.ino)
	return in.ino
}

func (k *keeper) changeLinks(in *inode, by int) *inode {
	changed := *in
	changed.nlink = uint32(int(in.nlink) + by)
	changed.ctime, changed.changed = k.time, k.index
	k.tree.putInode(&changed)
	return &changed
}

func (k *keeper) addOrphan(session ids.Session, ino ids.Inode) {
	k.tree.putOrphan(&orphan{ino: ino, removedBy: session, removedIndex: k.index, removedAt: k.time})
}
