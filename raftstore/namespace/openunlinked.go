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

// expireOrphan lets an orphan expire unless a session pins it.
func (t *tree) expireOrphan(o *orphan) {
	if t.orphans.isPinned(o.ino) {
		t.orphans.expiring.Delete(o)
	} else {
		t.orphans.expiring.Set(o)
	}
}

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

// dropExpiredOrphans runs with every command, so it needs no clock and no command of its own.
func (t *tree) dropExpiredOrphans(now int64) {
	for {
		o, found := t.orphans.expiring.Min()
		if !found || t.orphans.expiring.Len() <= orphanLimit && t.usage.forgotten <= orphanBytes && now-o.removedAt <= int64(orphanAge) {
			return
		}
		t.deleteOrphan(o)
	}
}

// mayWrite reports whether a session may write to an inode. Data without a name stays writable for every
// session that has it open, as on a local disk. A removed lock stays writable only for the session that
// removed it. So a holder on another host learns of its loss.
func (t *tree) mayWrite(session ids.Session, in *inode) bool {
	if in.nlink > 0 {
		return true
	}
	o, found := t.orphans.byIno.Get(in.ino)
	return found && (o.removedBy == session || o.data && !o.takenBack)
}

// setPinned adds or removes the pin of a session. Without a pin, the orphan stays as long as any other.
func (t *tree) setPinned(session ids.Session, ino ids.Inode, pinned bool) *storepb.Result {
	o, found := t.orphans.byIno.Get(ino)
	if !found || pinned && o.takenBack || !pinned && !t.orphans.isPinnedBy(ino, session) {
		return fail(storepb.Code_STALE)
	}
	t.putPin(o, session, pinned)
	return ok()
}

// pinRemoved pins an inode a command removed, if requested.
func (t *tree) pinRemoved(session ids.Session, removed, pin ids.Inode) {
	if removed != 0 && removed == pin {
		t.setPinned(session, removed, true)
	}
}

// releasePins marks an orphan as undone by Cancel. No session, not even the one that created it, can then
// lock it, write to it or pin it.
func (t *tree) releasePins(ino ids.Inode) {
	if o, found := t.orphans.byIno.Get(ino); found {
		disowned := *o
		disowned.removedBy, disowned.takenBack = 0, true
		t.putOrphan(&disowned)
	}
}

func (t *tree) isUndone(ino ids.Inode) bool {
	o, found := t.orphans.byIno.Get(ino)
	return found && o.takenBack
}

func (t *tree) unpinOrphansOf(session ids.Session) {
	for _, ino := range t.orphans.pinsOf(session) {
		t.setPinned(session, ino, false)
	}
}
