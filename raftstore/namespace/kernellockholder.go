package namespace

import (
	"slices"
	"syscall"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// A file that has or had a kernel lock is guarded by that lock alone. Its content is data, and lockfs never
// removes it, because waiters wait for that inode. But every reader of a file can take a kernel lock of it.
// So on a file with a known holder, only kernel locks of the holder's process family count. Other kernel
// locks leave the guards in place, and postpone a removal by lockfs.

// isLockOfHolder reports whether a requested kernel lock will guard the file. asked are processes: the
// caller's mount has to say whether the caller is of their family. nil: it has said so, or need not.
func (j *evaluator) isLockOfHolder(by *storepb.Caller, op *storepb.TakeLock, in *inode) (counts bool, asked []*process) {
	if in.kernelLocked || in.unlisted || in.manyNames {
		return true, nil
	}
	known, holders := j.holdersOf(in)
	if !known {
		return j.mayMarkLocked(by, in), nil
	}
	for _, p := range holders {
		isIt := func(m *storepb.Process) bool { return m != nil && processFrom(m).processID == p.processID }
		if !slices.ContainsFunc(op.GetJudged(), isIt) {
			return false, holders
		}
	}
	return len(holders) > 0 && op.GetKin(), nil
}

// holdersOf reports whether the content or the creator tells that a file is held, and returns the identified
// processes. While a content is being replaced, the previous holder counts.
func (j *evaluator) holdersOf(in *inode) (known bool, holders []*process) {
	add := func(says *facts) {
		known = known || says != nil
		if says != nil && says.process != nil && !slices.ContainsFunc(holders, func(p *process) bool { return p.processID == says.process.processID }) {
			holders = append(holders, says.process)
		}
	}
	add(in.facts)
	for _, e := range j.tree.namesOf(in.ino) {
		add(e.known)
		if g := j.effective(e, in); g.byCreator {
			add(&facts{process: g.process})
		}
	}
	return known, holders
}

// mayMarkLocked reports whether a caller's kernel lock guards a file without a known holder. An exclusively
// created file is often empty until its creator writes the holder. Until then, only its owner or a user with
// write permission may mark it.
func (j *evaluator) mayMarkLocked(by *storepb.Caller, in *inode) bool {
	isLock := slices.ContainsFunc(j.tree.namesOf(in.ino), func(e *entry) bool { return e.exclusive && j.isLock(e, in) })
	return !isLock || by.GetUid() == 0 || by.GetUid() == in.uid || in.mode&syscall.S_IWOTH != 0 ||
		in.mode&syscall.S_IWGRP != 0 && by.GetGid() == in.gid
}

// noteKernelLock makes the kernel locks of a file its only guard.
func (ns *Namespace) noteKernelLock(in *inode) {
	if in.kernelLocked || in.unlisted {
		return
	}
	locked := *in
	locked.kernelLocked = true
	ns.tree.putInode(&locked)
	for _, e := range ns.tree.evaluatedNames(in) {
		data := *e
		data.stale = nil
		ns.putEntryEvaluated(&data, &locked)
	}
}

// noteOtherLock records a kernel lock without effect on the guards of a file.
func (ns *Namespace) noteOtherLock(in *inode) {
	if in.otherLocked || in.kernelLocked {
		return
	}
	locked := *in
	locked.otherLocked = true
	ns.tree.putInode(&locked)
}

// reevaluateUnlocked evaluates stale locks again after changes of the kernel locks of their files. lockfs
// removes them once the file has none.
func (ns *Namespace) reevaluateUnlocked() {
	for _, ino := range ns.locks.Changed() {
		in, found := ns.tree.inode(ino)
		if !found || !in.otherLocked {
			continue
		}
		for _, e := range ns.tree.evaluatedNames(in) {
			if e.stale != nil {
				ns.reevaluate(e)
			} else {
				ns.reevaluateDirectory(e, false)
			}
		}
	}
}

// lockedByItsHolder reports whether the process of new facts already has a kernel lock of the file. The
// process took it while the file had another holder or an unknown one.
func (ns *Namespace) lockedByItsHolder(session ids.Session, in *inode, says *facts) bool {
	return in.otherLocked && !in.kernelLocked && says != nil && says.process != nil && ns.locks.HeldBy(in.ino, session, says.process.pid)
}
