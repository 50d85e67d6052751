package namespace

import "lockfs/raftstore/ids"

func (t *tree) putInode(in *inode) {
	t.touch(in.ino)
	old, _ := t.inodes.Set(in.ino, in)
	if old != nil {
		t.forgetInode(old)
		t.recountInode(old, in)
	} else {
		t.countInode(in, +1)
	}
	if h, ok := in.heldBy(); ok {
		t.byProcess.set(h)
	}
	if in.isDir() {
		t.placeDir(in)
	}
}

func (t *tree) forgetInode(in *inode) {
	if h, ok := in.heldBy(); ok {
		t.byProcess.delete(h)
	}
}

func (t *tree) deleteInode(ino ids.Inode) {
	if old, found := t.inodes.Delete(ino); found {
		t.touch(ino)
		t.forgetInode(old)
		t.countInode(old, -1)
		delete(t.below, ino)
	}
}

func (t *tree) putEntry(e *entry) {
	old, replaced := t.byName.Set(e)
	if t.noteChanged(old, e); !replaced {
		t.touchEntry(e)
	} else if !e.looksLike(old) {
		t.touchEntry(e)
		t.touch(old.ino)
	}
	if replaced {
		t.forgetEntry(old)
	} else if t.hasOne(e.parent) {
		t.countFilled(e.parent, -1)
	}
	t.byCookie.Set(e)
	t.byIno.Set(e)
	if e.due != 0 {
		t.byDue.Set(e)
	}
	if e.pending != nil {
		t.byPending.Set(e)
	}
	if e.isGuarded() {
		t.guarded.Set(e)
	}
	if e.mayTimeOut() {
		t.timeouts.Set(e)
	}
	t.list(e)
	e.creator.each(func(p *process) { t.byProcess.byCreator.Set(e.createdBy(p)) })
	t.countLockFile(e, +1)
	t.countLock(e, +1)
	t.countName(e, +1)
}

func (t *tree) deleteEntry(e *entry) {
	if old, found := t.byName.Delete(e); found {
		t.noteChanged(old, nil)
		t.touchEntry(old)
		t.forgetEntry(old)
		if in, found := t.inode(old.ino); found && in.manyNames {
			t.listFirst(old.ino)
		}
		if !t.hasEntries(old.parent) {
			t.countFilled(old.parent, +1)
		}
	}
}

func (t *tree) forgetEntry(e *entry) {
	t.byCookie.Delete(e)
	t.byIno.Delete(e)
	t.byDue.Delete(e)
	if e.pending != nil {
		t.byPending.Delete(e)
	}
	if e.isGuarded() {
		t.guarded.Delete(e)
	}
	if e.mayTimeOut() {
		t.timeouts.Delete(e)
	}
	t.listed.Delete(e)
	e.creator.each(func(p *process) { t.byProcess.byCreator.Delete(e.createdBy(p)) })
	t.countLockFile(e, -1)
	t.countLock(e, -1)
	t.countName(e, -1)
}

// countInode adds an inode; sign -1 subtracts it. An orphan without a pin counts for no user, so a removal
// makes room at once.
func (t *tree) countInode(in *inode, sign int64) {
	if t.isForgotten(in) {
		t.usage.forgotten += uint64(sign * in.bytes())
	} else {
		t.usage.count(in.payer(), sign, sign*in.bytes())
		t.usage.reserve.count(in.reserve, sign)
	}
}

// recountInode is countInode for a changed inode.
func (t *tree) recountInode(old, in *inode) {
	if old.payer() == in.payer() && old.bytes() == in.bytes() && old.bytesByName() == in.bytesByName() && old.reserve == in.reserve {
		return
	}
	t.countInode(old, -1)
	t.countInode(in, +1)
	t.recountBelow(in.ino, in.bytesByName()-old.bytesByName())
	if old.payer() != in.payer() {
		names := t.nameBytes(in)
		t.usage.count(old.payer(), 0, -names)
		t.usage.count(in.payer(), 0, +names)
	}
}

// nameBytes returns the size of all names of an inode. Those of a file with many names have no facts, so each
// counts the same.
func (t *tree) nameBytes(in *inode) (all int64) {
	if in.manyNames {
		return int64(in.nlink) * nameOverhead
	}
	for _, e := range t.namesOf(in.ino) {
		all += e.bytes()
	}
	return all
}

// countName adds a name for the owner of its inode and in the directories above; sign -1 subtracts it.
func (t *tree) countName(e *entry, sign int64) {
	if in, found := t.inode(e.ino); found {
		t.usage.count(in.payer(), 0, sign*e.bytes())
		t.countBelow(e, in, sign)
	}
}

func (t *tree) countLockFile(e *entry, by int) {
	if !e.lock {
		return
	}
	if t.lockFiles[e.parent] += by; t.lockFiles[e.parent] == 0 {
		delete(t.lockFiles, e.parent)
	}
}

// isForgotten reports whether an inode is an orphan without a pin, which expires soon.
func (t *tree) isForgotten(in *inode) bool {
	if in.nlink > 0 {
		return false
	}
	_, found := t.orphans.byIno.Get(in.ino)
	return found && !t.orphans.isPinned(in.ino)
}

// touch records a change of an inode: its attributes, content, names or entries.
func (t *tree) touch(ino ids.Inode) {
	t.touched = append(t.touched, ino)
}

func (t *tree) touchEntry(e *entry) {
	t.touch(e.parent)
	t.touch(e.ino)
}

// looksLike reports whether all queries for a name, its inode or its directory have the same answers.
func (e *entry) looksLike(other *entry) bool {
	return e.ino == other.ino && e.cookie == other.cookie && e.token == other.token && e.lock == other.lock && e.exclusive == other.exclusive
}
