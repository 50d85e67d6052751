package fusefs

import (
	"maps"
	"slices"
	"syscall"
	"time"

	"lockfs/raftstore/storepb"
)

// locks is what this mount knows of the advisory locks of a file. Guarded by the inode's mutex.
//
// The owner of a flock is its handle's number. That of a record lock is the kernel's: it stands for a process, until that
// closes a descriptor of the file, or for an open file description (F_OFD_SETLK), until that is released. The kernel tells
// of a release when it has closed the file and may have given the number to another one, which then is used first.
type locks struct {
	owners   map[lockOwner]*owned
	dropping map[lockOwner]*drops // owners whose locks are being released
}

// drops are releases of what one owner has. While the cluster has not been told of each, it gets nothing new: the last to come
// would take that along.
type drops struct {
	untold int
	over   chan struct{} // closed when there is none any more
}

type lockOwner struct {
	kind  storepb.LockKind
	owner uint64
}

// owned is what an owner may have. It is at least what the cluster knows of.
type owned struct {
	through  []*fileHandle // by which it has asked for locks; the last one it used is last
	ranges   []lockRange
	underway int  // requests
	drops    int  // how often all was released while requests were under way
	crowded  bool // several have been under way since the last time that none was: nobody knows in which order they were done
}

// lockRange is bytes, both ends included.
type lockRange struct{ start, end uint64 }

// rangesWithout is what there is left of ranges beside one.
func rangesWithout(ranges []lockRange, cut lockRange) []lockRange {
	var left []lockRange
	for _, r := range ranges {
		if r.start < cut.start {
			left = append(left, lockRange{r.start, min(r.end, cut.start-1)})
		}
		if r.end > cut.end {
			left = append(left, lockRange{max(r.start, cut.end+1), r.end})
		}
	}
	return left
}

func rangeOf(op *storepb.TakeLock) lockRange { return lockRange{op.GetStart(), op.GetEnd()} }

func ownerOf(op *storepb.TakeLock) lockOwner { return lockOwner{op.GetKind(), op.GetOwner()} }

// beginLock notes that an owner asks for a lock, once what it had is released. It answers its drops so far, too.
func (in *inode) beginLock(handle *fileHandle, key lockOwner) (own *owned, drops int, errno syscall.Errno) {
	for end := time.Now().Add(dropLimit); ; {
		in.mu.Lock()
		d := in.locks.dropping[key]
		if d == nil {
			own = in.owned(key, handle)
			own.underway++
			own.crowded = own.crowded || own.underway > 1
			drops = own.drops
			in.mu.Unlock()
			return own, drops, 0
		}
		in.mu.Unlock()
		select {
		case <-d.over:
		case <-time.After(time.Until(end)):
			return nil, 0, syscall.ETIMEDOUT
		}
	}
}

// owned is what an owner has that asks for locks through a handle. It is called with the inode's mutex held.
func (in *inode) owned(key lockOwner, handle *fileHandle) *owned {
	if in.locks.owners == nil {
		in.locks.owners = make(map[lockOwner]*owned)
	}
	own, found := in.locks.owners[key]
	if !found {
		own = new(owned)
		in.locks.owners[key] = own
	}
	own.through = append(slices.DeleteFunc(own.through, func(h *fileHandle) bool { return h == handle }), handle)
	return own
}

// endLock notes whether a request was done that had begun. If its owner released everything meanwhile, nobody knows whether the
// cluster was or will be told of that before the request was done or after: it answers whether a lock surely stays.
func (in *inode) endLock(own *owned, drops int, op *storepb.TakeLock, done bool) (stays bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	unlocked := op.GetType() == storepb.LockType_UNLOCK
	stays = unlocked || !done || own.drops == drops
	switch {
	case done && unlocked && !own.crowded:
		own.ranges = rangesWithout(own.ranges, rangeOf(op))
	case done && !unlocked:
		own.ranges = append(rangesWithout(own.ranges, rangeOf(op)), rangeOf(op))
	}
	if own.underway--; own.underway > 0 {
		return stays
	}
	own.crowded = false
	if len(own.ranges) == 0 {
		delete(in.locks.owners, ownerOf(op)) // so there is nothing to say when the file is closed
		if done && unlocked {
			in.forgetSessions(own)
		}
	}
	return stays
}

// forgetSessions is for an owner that has released everything: should the session end now, nothing is lost through the handles
// that nobody else uses. It is called with the inode's mutex held.
func (in *inode) forgetSessions(released *owned) {
	for _, handle := range released.through {
		uses := false
		for _, own := range in.locks.owners {
			uses = uses || slices.Contains(own.through, handle)
		}
		if !uses {
			handle.forgetSession()
		}
	}
}

// giveUp is for a request of which nobody can tell what became: all that its owner has is to be released before the function is
// called that it answers. If that is more than the request was about, whoever uses it may believe to have it still: it is
// lost, and the descriptors are of no use any more from now on.
func (in *inode) giveUp(own *owned, op *storepb.TakeLock) (lost bool, dropped func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if lost = !own.hasOnly(op); lost {
		for _, handle := range own.through {
			handle.loseLocks()
		}
	}
	return lost, in.startDrop(ownerOf(op))
}

// beginRelease is for a request that was not sent, if it was to release all that its owner has: see giveUp. Else it answers nil.
func (in *inode) beginRelease(own *owned, op *storepb.TakeLock) (dropped func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if op.GetType() != storepb.LockType_UNLOCK || len(own.ranges) == 0 || !own.hasOnly(op) {
		return nil
	}
	return in.startDrop(ownerOf(op))
}

// hasOnly tells whether an owner has and wants nothing but what a request of it is about that is under way.
func (own *owned) hasOnly(op *storepb.TakeLock) bool {
	left := own.ranges
	if op.GetType() == storepb.LockType_UNLOCK {
		left = rangesWithout(left, rangeOf(op))
	}
	return len(left) == 0 && own.underway == 1
}

// lockedThrough answers nil if an owner has no record locks.
func (in *inode) lockedThrough(owner uint64) *fileHandle {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.lastThrough(lockOwner{storepb.LockKind_RECORD, owner})
}

// lastThrough is called with the inode's mutex held.
func (in *inode) lastThrough(key lockOwner) *fileHandle {
	own, found := in.locks.owners[key]
	if !found {
		return nil
	}
	return own.through[len(own.through)-1]
}

// recordOwners are those who took their record locks through a handle.
func (in *inode) recordOwners(handle *fileHandle) (owners []uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, key := range slices.Collect(maps.Keys(in.locks.owners)) {
		if key.kind == storepb.LockKind_RECORD && in.lastThrough(key) == handle {
			owners = append(owners, key.owner)
		}
	}
	return owners
}

// beginDrop is undone by the function that it answers: nil if there is nothing to release, or if through is given and a record
// lock's owner has locked through another handle since.
func (in *inode) beginDrop(key lockOwner, through *fileHandle) (dropped func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, found := in.locks.owners[key]; !found {
		return nil
	}
	if key.kind == storepb.LockKind_RECORD && through != nil && in.lastThrough(key) != through {
		return nil
	}
	return in.startDrop(key)
}

// startDrop is called with the inode's mutex held. Requests that are under way go on, and may be done after it.
func (in *inode) startDrop(key lockOwner) (dropped func()) {
	if own, found := in.locks.owners[key]; found && own.underway > 0 {
		own.ranges = nil
		own.drops++
	} else {
		delete(in.locks.owners, key)
	}
	if in.locks.dropping == nil {
		in.locks.dropping = make(map[lockOwner]*drops)
	}
	d := in.locks.dropping[key]
	if d == nil {
		d = &drops{over: make(chan struct{})}
		in.locks.dropping[key] = d
	}
	d.untold++
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		if d.untold--; d.untold == 0 {
			close(d.over)
			delete(in.locks.dropping, key)
		}
	}
}

func (in *inode) isDropping(owner lockOwner) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.locks.dropping[owner] != nil
}

func (in *inode) awaitDrop(owner lockOwner, limit time.Duration) bool {
	in.mu.Lock()
	drops := in.locks.dropping[owner]
	in.mu.Unlock()
	if drops == nil {
		return true
	}
	select {
	case <-drops.over:
		return true
	case <-time.After(limit):
		return false
	}
}

// lostSession stands for one that has ended: the locks that were taken through a handle are lost.
const lostSession = ^uint64(0)

// lockSession is the session in which locks are taken through the handle: the one in use when the first was.
func (h *fileHandle) lockSession(inUse uint64) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == 0 {
		h.session = inUse
	}
	return h.session
}

// loseLocks makes the handle one of which the locks are lost.
func (h *fileHandle) loseLocks() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = lostSession
}

// forgetSession is for a handle through which nothing is locked any more.
func (h *fileHandle) forgetSession() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session != lostSession {
		h.session = 0
	}
}

// noteClose notes that a descriptor of the handle is closed.
func (h *fileHandle) noteClose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing = true
}

func (h *fileHandle) isClosing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closing
}

// isLost tells whether the locks that were taken through the handle were given up.
func (h *fileHandle) isLost() bool { return h.lockSession(0) == lostSession }

// lost tells whether a lock was taken through the handle that whoever has it may believe to hold while another host has it
// now: its session has ended, or it was given up.
func (fs *fileSystem) lost(h *fileHandle) bool {
	session := h.lockSession(0)
	return h.isLost() || session != 0 && session != fs.ops.Session()
}
