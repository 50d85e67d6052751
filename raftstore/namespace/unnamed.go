package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (t *tree) putOrphan(o *orphan) {
	in, found := t.inode(o.ino)
	if found {
		t.countInode(in, -1)
	}
	t.orphans.byIno.Set(o.ino, o)
	if found {
		t.countInode(in, +1)
	}
	if o.pinned {
		t.orphans.expiring.Delete(o)
	} else {
		t.orphans.expiring.Set(o)
	}
}

func (t *tree) deleteOrphan(o *orphan) {
	t.deleteInode(o.ino)
	t.orphans.byIno.Delete(o.ino)
	t.orphans.expiring.Delete(o)
}

// dropExpiredOrphans runs with every command, so that it needs no clock and no command of its own.
func (t *tree) dropExpiredOrphans(now int64) {
	for {
		o, found := t.orphans.expiring.Min()
		if !found || t.orphans.expiring.Len() <= orphanLimit && t.ledger.forgotten <= orphanBytes && now-o.removedAt <= int64(orphanAge) {
			return
		}
		t.deleteOrphan(o)
	}
}

// mayWrite tells whether content may still be written: to an inode with a name, and to one that the
// session itself removed.
func (t *tree) mayWrite(session ids.Session, in *inode) bool {
	if in.nlink > 0 {
		return true
	}
	o, found := t.orphans.byIno.Get(in.ino)
	return found && o.removedBy == session
}

// setPinned keeps an orphan, or lets it go: then it stays as long as it would have without the pin.
func (t *tree) setPinned(session ids.Session, ino ids.Inode, pinned bool) *storepb.Result {
	o, found := t.orphans.byIno.Get(ino)
	if !found || o.removedBy != session {
		return fail(storepb.Code_STALE)
	}
	changed := *o
	changed.pinned = pinned
	t.putOrphan(&changed)
	return ok()
}

// pinRemoved keeps what a command has removed if it was to be kept.
func (t *tree) pinRemoved(session ids.Session, removed, pin ids.Inode) {
	if removed != 0 && removed == pin {
		t.setPinned(session, removed, true)
	}
}

// disown makes an orphan one that was taken back: nobody, not even on the mount that made it, can do anything with it that others
// would have to see.
func (t *tree) disown(ino ids.Inode) {
	if o, found := t.orphans.byIno.Get(ino); found {
		disowned := *o
		disowned.removedBy, disowned.takenBack = 0, true
		t.putOrphan(&disowned)
	}
}

func (t *tree) isTakenBack(ino ids.Inode) bool {
	o, found := t.orphans.byIno.Get(ino)
	return found && o.takenBack
}

// unpinOrphansOf lets the inodes go that a session removed and kept.
func (t *tree) unpinOrphansOf(session ids.Session) {
	var own []*orphan
	t.orphans.byIno.Scan(func(_ ids.Inode, o *orphan) bool {
		if o.removedBy == session && o.pinned {
			own = append(own, o)
		}
		return true
	})
	for _, o := range own {
		t.setPinned(session, o.ino, false)
	}
}
