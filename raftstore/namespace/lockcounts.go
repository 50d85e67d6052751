package namespace

import (
	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
)

// lockCounts are kept with every change, so that nobody has to walk a million names to know them. They are worked out again
// from the rest when a state is restored.
type lockCounts struct {
	files map[lockKind]int // locks that are files or symbolic links, without those that were emptied for a moment
	dirs  int              // empty directories with a name, or in a directory with a name, that says lock
}

type lockKind struct {
	format lockfact.Format
	stale  bool
}

// kind is what an entry counts as, if it is a lock and a file's.
func (e *entry) kind() (k lockKind, isLock bool) {
	return lockKind{e.format, e.stale != nil}, e.lock && !lockfact.IsTemporary(e.name)
}

// countLock counts a name, or takes it away with sign -1.
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

// countFilled is told that a directory has its first entry now (sign -1) or has lost its last one.
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

// hasOne tells whether a directory has exactly one entry.
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

// LockCounts calls visit with how many files (or symbolic links) of a format are locks, as far as they are marked as stale or not.
// Nothing is said of formats without any.
func (ns *Namespace) LockCounts(visit func(format lockfact.Format, stale bool, count int)) {
	for kind, count := range ns.tree.lockCounts.files {
		visit(kind.format, kind.stale, count)
	}
}

// LockDirectories is the number of empty directories that are locks by their names, such as those of scripts that lock with mkdir.
func (ns *Namespace) LockDirectories() int { return ns.tree.lockCounts.dirs }

// KernelLocks is the number of flock and fcntl locks that are held, and of the requests that wait for one.
func (ns *Namespace) KernelLocks() (held, waiting int) { return ns.locks.Counts() }

// HostCounts are how many hosts there are of a kind, and what processes of silent ones hold.
type HostCounts struct {
	Mounted     int // they have a session
	Silent      int // their last session was given up on
	Left        int // their mounts have ended
	Unreachable int // locks of processes on hosts that have no session
}

// HostCounts takes time proportional to the number of hosts.
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
		counts.Unreachable += ns.tree.holdings.perHost[name]
		return true
	})
	return counts
}

// Refusal is why somebody was not given his will with a lock.
type Refusal string

// The refusals.
const (
	RefusedLook      Refusal = "another_lock"    // the caller looked at a lock that is gone
	RefusedBeginning Refusal = "being_written"   // the caller looked at it before its holder had written to it
	RefusedOwner     Refusal = "owner"           // only its owner's token releases it
	RefusedHost      Refusal = "other_host"      // it was taken on another host
	RefusedMachine   Refusal = "other_machine"   // on another machine of that name
	RefusedContainer Refusal = "other_container" // its process cannot be seen from where the caller is
	RefusedProcess   Refusal = "other_process"   // only its process and its children write to it
)

// Refusals calls visit with how often commands were refused for each reason since this state was begun or restored in this
// process. Other than [Namespace.EventCounts] it is not part of the state.
func (ns *Namespace) Refusals(visit func(reason Refusal, count uint64)) {
	for reason, count := range ns.events.refused {
		visit(reason, count)
	}
}
