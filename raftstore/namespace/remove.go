package namespace

import "lockfs/raftstore/ids"

// removeEntry removes a name. It returns the inode's number if that was its last name.
func (k *keeper) removeEntry(session ids.Session, e *entry, in *inode) (removed ids.Inode) {
	data := !k.isLock(e, in)
	k.tree.deleteEntry(e)
	subdirs := 0
	if in.isDir() {
		subdirs = -1
	}
	k.touchDir(e.parent, subdirs)
	removed = k.dropLink(session, in, data)
	if removed != 0 {
		k.removed = append(k.removed, Removal{Session: session, Parent: e.parent, Name: e.name, Ino: removed})
	}
	return removed
}

// dropLink counts a name less. An inode without names becomes an orphan, and its number is the result. data
// says that the name was no lock.
func (k *keeper) dropLink(session ids.Session, in *inode, data bool) (removed ids.Inode) {
	links := -1
	if in.isDir() {
		links = -int(in.nlink)
	}
	in = k.changeLinks(in, links)
	if in.nlink > 0 {
		return 0
	}
	k.tree.putOrphan(&orphan{ino: in.ino, removedBy: session, removedIndex: k.index, removedAt: k.time, data: data && in.isFile()})
	return in.ino
}

func (k *keeper) changeLinks(in *inode, by int) *inode {
	changed := *in
	changed.nlink = uint32(int(in.nlink) + by)
	changed.ctime, changed.changed = k.time, k.index
	k.tree.putInode(&changed)
	return &changed
}
