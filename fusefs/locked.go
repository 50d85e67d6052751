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
	through  map[uint64]*fileHandle      // by owner of record locks: the handle that it took one through last
	dropping map[lockOwner]chan struct{} // owners whose locks are being released
}

type lockOwner struct {
	kind  storepb.LockKind
	owner uint64
}

// locksThrough notes that an owner may have record locks from now on, once what it had is released.
func (in *inode) locksThrough(handle *fileHandle, owner uint64) syscall.Errno {
	if !in.awaitDrop(lockOwner{storepb.LockKind_RECORD, owner}, dropLimit) {
		return syscall.ETIMEDOUT
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.locks.through == nil {
		in.locks.through = make(map[uint64]*fileHandle)
	}
	in.locks.through[owner] = handle
	return 0
}

// lockedThrough answers nil if an owner has no record locks.
func (in *inode) lockedThrough(owner uint64) *fileHandle {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.locks.through[owner]
}

// recordOwners are those who took their record locks through a handle.
func (in *inode) recordOwners(handle *fileHandle) []uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(in.locks.through)), func(owner uint64) bool {
		return in.locks.through[owner] != handle
	})
}

// beginDrop is undone by the function that it answers: nil if through is given and a record lock's owner has locked through
// another handle since.
func (in *inode) beginDrop(key lockOwner, through *fileHandle) (dropped func()) {
	done := make(chan struct{})
	in.mu.Lock()
	defer in.mu.Unlock()
	if key.kind == storepb.LockKind_RECORD {
		if through != nil && in.locks.through[key.owner] != through {
			return nil
		}
		delete(in.locks.through, key.owner)
	}
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

// lockSession is the session in which locks are taken through the handle: the one in use when the first was.
func (h *fileHandle) lockSession(inUse uint64) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == 0 {
		h.session = inUse
	}
	return h.session
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

// lost tells whether a lock was taken through the handle in a session that has ended: whoever has it may
// believe to hold a lock which another host has now.
func (fs *fileSystem) lost(h *fileHandle) bool {
	session := h.lockSession(0)
	return session != 0 && session != fs.ops.Session()
}
