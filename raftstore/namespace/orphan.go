package namespace

import (
	"time"

	"lockfs/raftstore/storepb"
)

// How long an inode without a name stays for those who have it open elsewhere.
const (
	orphanAge   = 30 * time.Second
	orphanLimit = 1024 // of them, and orphanBytes
)

// orphan is an inode that lost its last name. It is never modified once it is in a tree.
type orphan struct {
	ino          uint64
	removedBy    uint64 // session
	removedIndex uint64
	removedAt    int64
	pinned       bool // kept until the session that removed it unpins it
	takenBack    bool // it was never meant to be
}

// Removal is an inode that lost its last name.
type Removal struct {
	Session uint64 // that removed it and whose kernel knows; 0: lockfs itself, or somebody by force
	Parent  uint64
	Name    string
	Ino     uint64
}

// Removed answers the inodes that lost their last names with the last command.
func (ns *Namespace) Removed() []Removal { return ns.removed }

// lessByRemoval tells apart those that one command removed.
func lessByRemoval(a, b *orphan) bool {
	if a.removedIndex != b.removedIndex {
		return a.removedIndex < b.removedIndex
	}
	return a.ino < b.ino
}

func (ns *Namespace) addOrphan(session, ino uint64) {
	ns.putOrphan(&orphan{ino: ino, removedBy: session, removedIndex: ns.index, removedAt: ns.time})
}

func (ns *Namespace) putOrphan(o *orphan) {
	in, found := ns.inodes.Get(o.ino)
	if found {
		ns.countInode(in, -1)
	}
	ns.orphans.Set(o.ino, o)
	if found {
		ns.countInode(in, +1)
	}
	if o.pinned {
		ns.expiring.Delete(o)
	} else {
		ns.expiring.Set(o)
	}
}

func (ns *Namespace) deleteOrphan(o *orphan) {
	ns.deleteInode(o.ino)
	ns.orphans.Delete(o.ino)
	ns.expiring.Delete(o)
}

// dropExpiredOrphans runs with every command, so that it needs no clock and no command of its own.
func (ns *Namespace) dropExpiredOrphans() {
	for {
		o, found := ns.expiring.Min()
		if !found || ns.expiring.Len() <= orphanLimit && ns.forgotten <= orphanBytes && ns.time-o.removedAt <= int64(orphanAge) {
			return
		}
		ns.deleteOrphan(o)
	}
}

// isForgotten tells of an inode that is forgotten soon: nothing is to be kept of it.
func (ns *Namespace) isForgotten(in *inode) bool {
	if in.nlink > 0 {
		return false
	}
	o, found := ns.orphans.Get(in.ino)
	return found && !o.pinned
}

// mayWrite tells whether content may still be written: to an inode with a name, and to one that the
// session itself removed.
func (ns *Namespace) mayWrite(session uint64, in *inode) bool {
	if in.nlink > 0 {
		return true
	}
	o, found := ns.orphans.Get(in.ino)
	return found && o.removedBy == session
}

// setPinned keeps an orphan, or lets it go: then it stays as long as it would have without the pin.
func (ns *Namespace) setPinned(session, ino uint64, pinned bool) *storepb.Result {
	o, found := ns.orphans.Get(ino)
	if !found || o.removedBy != session {
		return fail(storepb.Code_STALE)
	}
	changed := *o
	changed.pinned = pinned
	ns.putOrphan(&changed)
	return ok()
}

// pinRemoved keeps what a command has removed if it was to be kept.
func (ns *Namespace) pinRemoved(session, removed, pin uint64) {
	if removed != 0 && removed == pin {
		ns.setPinned(session, removed, true)
	}
}

// disown makes an orphan one that was taken back: nobody, not even on the mount that made it, can do anything with it that others
// would have to see.
func (ns *Namespace) disown(ino uint64) {
	if o, found := ns.orphans.Get(ino); found {
		disowned := *o
		disowned.removedBy, disowned.takenBack = 0, true
		ns.putOrphan(&disowned)
	}
}

func (ns *Namespace) isTakenBack(ino uint64) bool {
	o, found := ns.orphans.Get(ino)
	return found && o.takenBack
}

// unpinOrphansOf lets the inodes go that a session removed and kept.
func (ns *Namespace) unpinOrphansOf(session uint64) {
	var own []*orphan
	ns.orphans.Scan(func(_ uint64, o *orphan) bool {
		if o.removedBy == session && o.pinned {
			own = append(own, o)
		}
		return true
	})
	for _, o := range own {
		ns.setPinned(session, o.ino, false)
	}
}
