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
	dropping map[lockOwner]chan struct{} // owners whose locks are being released
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

// beginLock notes that an owner asks for a lock, once what it had is released.
func (in *inode) beginLock(handle *fileHandle, key lockOwner) (*owned, syscall.Errno) {
	for end := time.Now().Add(dropLimit); ; {
		in.mu.Lock()
		done, isDropping := in.locks.dropping[key]
		if !isDropping {
			own := in.owned(key, handle)
			own.underway++
			own.crowded = own.crowded || own.underway > 1
			in.mu.Unlock()
			return own, 0
		}
		in.mu.Unlock()
		select {
		case <-done:
		case <-time.After(time.Until(end)):
			return nil, syscall.ETIMEDOUT
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

// endLock notes whether a request was done that had begun.
func (in *inode) endLock(own *owned, handle *fileHandle, op *storepb.TakeLock, done bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	unlocked := op.GetType() == storepb.LockType_UNLOCK
	switch now := in.locks.owners[ownerOf(op)]; {
	case done && unlocked && !own.crowded:
		own.ranges = rangesWithout(own.ranges, rangeOf(op))
	case done && !unlocked && now == own:
		own.ranges = append(rangesWithout(own.ranges, rangeOf(op)), rangeOf(op))
	case done && !unlocked: // what its owner had was released meanwhile, perhaps before this
		now = in.owned(ownerOf(op), handle)
		now.ranges = append(rangesWithout(now.ranges, rangeOf(op)), rangeOf(op))
		now.crowded = now.underway > 0
	}
	if own.underway--; own.underway == 0 {
		own.crowded = false
		if in.locks.owners[ownerOf(op)] == own && len(own.ranges) == 0 {
			delete(in.locks.owners, ownerOf(op)) // so there is nothing to say when the file is closed
		}
	}
}

// giveUp is for a request of which nobody can tell what became: all that its owner has is to be released before the function is
// called that it answers. If that is more than the request was about, whoever uses it may believe to have it still: it is
// lost, and the descriptors are of no use any more from now on.
func (in *inode) giveUp(own *owned, op *storepb.TakeLock) (lost bool, dropped func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	left, underway, through := own.ranges, own.underway, own.through
	if now, found := in.locks.owners[ownerOf(op)]; found && now != own {
		left, underway, through = slices.Concat(left, now.ranges), underway+now.underway, slices.Concat(through, now.through)
	}
	if op.GetType() == storepb.LockType_UNLOCK {
		left = rangesWithout(left, rangeOf(op))
	}
	if lost = len(left) > 0 || underway > 1; lost {
		for _, handle := range through {
			handle.loseLocks()
		}
	}
	return lost, in.startDrop(ownerOf(op))
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

// startDrop is called with the inode's mutex held.
func (in *inode) startDrop(key lockOwner) (dropped func()) {
	done := make(chan struct{})
	delete(in.locks.owners, key)
	if in.locks.dropping == nil {
		in.locks.dropping = make(map[lockOwner]chan struct{})
	}
	in.locks.dropping[key] = done
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		close(done)
		if in.locks.dropping[key] == done {
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
	done, found := in.locks.dropping[owner]
	in.mu.Unlock()
	if !found {
		return true
	}
	select {
	case <-done:
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
