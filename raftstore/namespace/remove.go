package namespace

import "lockfs/raftstore/ids"

// removeEntry removes a name. It returns the inode's number if that was its last name.
func (ns *Namespace) removeEntry(session ids.Session, e *entry, in *inode) (removed ids.Inode) {
	data := !ns.isLock(e, in)
	ns.tree.deleteEntry(e)
	subdirs := 0
	if in.isDir() {
		subdirs = -1
	}
	ns.touchDir(e.parent, subdirs)
	removed = ns.dropLink(session, in, data)
	if removed != 0 {
		ns.removed = append(ns.removed, Removal{Session: session, Parent: e.parent, Name: e.name, Ino: removed})
	}
	return removed
}

// dropLink counts a name less. An inode without names becomes an orphan, and its number is the result. data
// says that the name was no lock.
func (ns *Namespace) dropLink(session ids.Session, in *inode, data bool) (removed ids.Inode) {
	links := -1
	if in.isDir() {
		links = -int(in.nlink)
	}
	in = ns.changeLinks(in, links)
	if in.nlink > 0 {
		return 0
	}
	ns.tree.putOrphan(&orphan{ino: in.ino, removedBy: session, removedIndex: ns.index, removedAt: ns.time, data: data && in.isFile()})
	return in.ino
}

func (ns *Namespace) changeLinks(in *inode, by int) *inode {
	changed := *in
	changed.nlink = uint32(int(in.nlink) + by)
	changed.ctime, changed.changed = ns.time, ns.index
	ns.tree.putInode(&changed)
	return &changed
}
