package namespace

import (
	"slices"
	"syscall"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// A file that has or had a kernel lock is guarded by that lock alone: its content is data, and lockfs never removes it, because
// waiters wait for that inode. But whoever can read a file can take a kernel lock of it. So on a file that a process is known to hold,
// only kernel locks of the family of that process count. Other kernel locks leave the guards in place, and postpone a removal by lockfs
// while they are held or waited for.

// countsAsLock reports whether a kernel lock that a caller asks for guards the file from then on. asked are processes of which the
// caller's mount has to say whether the caller is of their family; nil: it has, or need not.
func (j *judge) countsAsLock(by *storepb.Caller, op *storepb.TakeLock, in *inode) (counts bool, asked []*process) {
	if in.kernelLocked || in.unlisted || in.manyNames {
		return true, nil
	}
	known, holders := j.holdersOf(in)
	if !known {
		return j.mayMark(by, in), nil
	}
	for _, p := range holders {
		isIt := func(m *storepb.Process) bool { return m != nil && processFrom(m).processID == p.processID }
		if !slices.ContainsFunc(op.GetJudged(), isIt) {
			return false, holders
		}
	}
	return len(holders) > 0 && op.GetKin(), nil
}

// holdersOf returns whether it is known that a file is held, by its content or by its maker, and by which processes as far as they are
// identified. While a content is replaced the holder is the one before.
func (j *judge) holdersOf(in *inode) (known bool, holders []*process) {
	add := func(says *facts) {
		known = known || says != nil
		if says != nil && says.process != nil && !slices.ContainsFunc(holders, func(p *process) bool { return p.processID == says.process.processID }) {
			holders = append(holders, says.process)
		}
	}
	add(in.facts)
	for _, e := range j.tree.namesOf(in.ino) {
		add(e.known)
		if g := j.govern(e, in); g.byCreator {
			add(&facts{process: g.process})
		}
	}
	return known, holders
}

// mayMark reports whether the kernel lock of a caller guards a file without a known holder. A name that was made exclusively is often
// empty for a moment, until its maker writes who holds it: then it is marked by its owner, or by a user who may write to it.
func (j *judge) mayMark(by *storepb.Caller, in *inode) bool {
	isLock := slices.ContainsFunc(j.tree.namesOf(in.ino), func(e *entry) bool { return e.exclusive && j.isLock(e, in) })
	return !isLock || by.GetUid() == 0 || by.GetUid() == in.uid || in.mode&syscall.S_IWOTH != 0 ||
		in.mode&syscall.S_IWGRP != 0 && by.GetGid() == in.gid
}

// noteKernelLock has a file be guarded by its kernel locks alone.
func (k *keeper) noteKernelLock(in *inode) {
	if in.kernelLocked || in.unlisted {
		return
	}
	locked := *in
	locked.kernelLocked = true
	k.tree.putInode(&locked)
	for _, e := range k.tree.judgedNames(in) {
		data := *e
		data.stale = nil
		k.putJudged(&data, &locked)
	}
}

// noteOtherLock records a kernel lock that leaves the guards of a file in place.
func (k *keeper) noteOtherLock(in *inode) {
	if in.otherLocked || in.kernelLocked {
		return
	}
	locked := *in
	locked.otherLocked = true
	k.tree.putInode(&locked)
}

// judgeUnlocked judges the stale locks again that lockfs removes once no process has or wants a kernel lock of their file.
func (k *keeper) judgeUnlocked() {
	for _, ino := range k.locks.Changed() {
		in, found := k.tree.inode(ino)
		if !found || !in.otherLocked {
			continue
		}
		for _, e := range k.tree.judgedNames(in) {
			if e.stale != nil {
				k.judgeAgain(e)
			} else {
				k.judgeDirectoryOf(e, false)
			}
		}
	}
}

// lockedByItsHolder reports whether the process of new facts has a kernel lock of the file already, taken while another process held
// the file or its holder was not known.
func (k *keeper) lockedByItsHolder(session ids.Session, in *inode, says *facts) bool {
	return in.otherLocked && !in.kernelLocked && says != nil && says.process != nil && k.locks.HeldBy(in.ino, session, says.process.pid)
}
