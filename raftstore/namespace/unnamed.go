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
	t.expireOrphan(o)
}

// expireOrphan has an orphan expire unless a session keeps it.
func (t *tree) expireOrphan(o *orphan) {
	if t.orphans.isPinned(o.ino) {
		t.orphans.expiring.Delete(o)
	} else {
		t.orphans.expiring.Set(o)
	}
}

// putPin sets or removes the pin of a session.
func (t *tree) putPin(o *orphan, session ids.Session, pinned bool) {
	in, found := t.inode(o.ino)
	if found {
		t.countInode(in, -1)
	}
	if p := (pin{o.ino, session}); pinned {
		t.orphans.pins.Set(p)
		t.orphans.pinsBySession.Set(p)
	} else {
		t.orphans.pins.Delete(p)
		t.orphans.pinsBySession.Delete(p)
	}
	if found {
		t.countInode(in, +1)
	}
	t.expireOrphan(o)
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

// mayWrite reports whether a session may write to an inode. Without a name, data stays writable for every session that has it
// open, as on a local disk. A lock stays writable for the session that removed it alone: the holder elsewhere learns so that it
// lost the lock.
func (t *tree) mayWrite(session ids.Session, in *inode) bool {
	if in.nlink > 0 {
		return true
	}
	o, found := t.orphans.byIno.Get(in.ino)
	return found && (o.removedBy == session || o.data && !o.takenBack)
}

// setPinned keeps an orphan for a session, or lets it go. Without a pin it stays as long as it would have without any.
func (t *tree) setPinned(session ids.Session, ino ids.Inode, pinned bool) *storepb.Result {
	o, found := t.orphans.byIno.Get(ino)
	if !found || pinned && o.takenBack || !pinned && !t.orphans.isPinnedBy(ino, session) {
		return fail(storepb.Code_STALE)
	}
	t.putPin(o, session, pinned)
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

// unpinOrphansOf lets the inodes go that a session keeps.
func (t *tree) unpinOrphansOf(session ids.Session) {
	for _, ino := range t.orphans.pinsOf(session) {
		t.setPinned(session, ino, false)
	}
}
