package namespace

import (
	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
)

// lockCounts follow each change, so no query walks a million names. A restored state computes them again.
type lockCounts struct {
	files map[lockKind]int // files and symbolic links, without emptied locks
	dirs  int              // empty lock directories by their own or their directory's name
}

type lockKind struct {
	format lockfact.Format
	stale  bool
}

// kind returns the kind of a lock in a file.
func (e *entry) kind() (k lockKind, isLock bool) {
	return lockKind{e.format, e.stale != nil}, e.lock && !lockfact.IsTemporary(e.name)
}

// countLock counts a name; sign -1 subtracts it.
func (t *tree) countLock(e *entry, sign int) {
	if kind, isLock := e.kind(); isLock {
		if t.lockCounts.files[kind] += sign; t.lockCounts.files[kind] == 0 {
			delete(t.lockCounts.files, kind)
		}
		return
	}
	if in, found := t.inode(e.ino); found && e.isLockDir() && in.isDir() && !t.hasEntries(e.ino) {
		t.lockCounts.dirs += sign
	}
}

// countFilled records a directory's first entry (sign -1) or the loss of its last one.
func (t *tree) countFilled(dir ids.Inode, sign int) {
	e := t.nameOf(dir)
	if e == nil {
		return
	}
	if e.isLockDir() {
		t.lockCounts.dirs += sign
	}
	t.list(e)
}

func (t *tree) hasOne(dir ids.Inode) bool {
	entries := 0
	t.byName.Ascend(&entry{parent: dir}, func(e *entry) bool {
		if e.parent == dir {
			entries++
		}
		return e.parent == dir && entries < 2
	})
	return entries == 1
}

// LockCounts visits the number of locks in files and symbolic links, by format and by staleness as marked. It
// skips formats without locks.
func (ns *Namespace) LockCounts(visit func(format lockfact.Format, stale bool, count int)) {
	for kind, count := range ns.tree.lockCounts.files {
		visit(kind.format, kind.stale, count)
	}
}

// LockDirectories returns the number of empty directories with names of locks, as of scripts with mkdir.
func (ns *Namespace) LockDirectories() int { return ns.tree.lockCounts.dirs }

// KernelLocks returns the number of flock and fcntl locks, held and waiting.
func (ns *Namespace) KernelLocks() (held, waiting int) { return ns.locks.Counts() }

// HostCounts are the numbers of hosts by kind, and of the locks of unreachable hosts.
type HostCounts struct {
	Mounted     int // with a session
	Silent      int // their last session expired
	Left        int // their mounts have ended
	Unreachable int // locks of processes on hosts without a session
}

// HostCounts takes time in proportion to the hosts.
func (ns *Namespace) HostCounts() (counts HostCounts) {
	ns.hosts.byName.Scan(func(name string, h *host) bool {
		switch {
		case h.sessions > 0:
			counts.Mounted++
			return true
		case h.left:
			counts.Left++
		default:
			counts.Silent++
		}
		counts.Unreachable += ns.tree.byProcess.perHost[name]
		return true
	})
	return counts
}

// Refusal is the reason for a refused change of a lock.
type Refusal string

// The refusals.
const (
	RefusedLook      Refusal = "another_lock"    // the observed lock is gone
	RefusedBeginning Refusal = "being_written"   // the caller observed it before its holder wrote to it
	RefusedOwner     Refusal = "owner"           // only its owner's token releases it
	RefusedHost      Refusal = "other_host"      // it was taken on another host
	RefusedMachine   Refusal = "other_machine"   // it was taken on another machine of that name
	RefusedContainer Refusal = "other_container" // the caller cannot see its process
	RefusedProcess   Refusal = "other_process"   // only its process and its children write to it
)

// Refusals visits the number of refused commands by reason, since this process began or restored this state.
// Unlike [Namespace.EventCounts] it is not part of the state.
func (ns *Namespace) Refusals(visit func(reason Refusal, count uint64)) {
	for reason, count := range ns.events.refused {
		visit(reason, count)
	}
}
