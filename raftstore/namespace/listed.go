package namespace

import (
	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
)

// The list of locks comes from an index, so data beside the locks costs nothing.

// list adds a name to the index, or deletes it.
func (t *tree) list(e *entry) {
	if t.mayBeListed(e) {
		t.listed.Set(e)
	} else {
		t.listed.Delete(e)
	}
}

// mayBeListed is true for every name in the list of locks, and for few others.
func (t *tree) mayBeListed(e *entry) bool {
	in, found := t.inode(e.ino)
	switch {
	case !found:
		return false
	case in.isDir():
		mayBeLock := e.known != nil || e.exclusive && (e.isLockDir() || len(in.evidence) > 0)
		return e.ruled || mayBeLock && !t.hasEntries(e.ino)
	case (e.lock || in.facts == nil && e.known != nil) && !lockfact.IsTemporary(e.name):
		return true
	}
	return t.locked[e.ino] && (!in.manyNames || t.nameOf(e.ino) == e)
}

// noteLocked records whether a file has kernel locks or requests. Of a file with many names, the first is
// listed.
func (t *tree) noteLocked(ino ids.Inode, locked bool) {
	if t.locked[ino] == locked {
		return
	}
	if locked {
		t.locked[ino] = true
	} else {
		delete(t.locked, ino)
	}
	in, found := t.inode(ino)
	switch {
	case !found:
	case !in.manyNames:
		for _, e := range t.namesOf(ino) {
			t.list(e)
		}
	default:
		t.listFirst(ino)
	}
}

func (t *tree) listFirst(ino ids.Inode) {
	if first := t.nameOf(ino); first != nil {
		t.list(first)
	}
}

// listLocked lists the files with new or lost kernel locks after a command.
func (ns *Namespace) listLocked() {
	for _, ino := range ns.locks.Changed() {
		ns.tree.noteLocked(ino, ns.locks.Locked(ino))
	}
}
