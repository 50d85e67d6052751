package fusefs

import (
	"slices"
	"syscall"
	"time"

	"lockfs/raftstore/storepb"
)

// locks is what this mount knows of the advisory locks of a file. Guarded by the inode's mutex.
type locks struct {
	owners   map[uint64]bool             // of record locks, until they close the file
	dropping map[lockOwner]chan struct{} // owners whose locks are being released
}

type lockOwner struct {
	kind  storepb.LockKind
	owner uint64
}

// lockedBy notes that an owner may have record locks from now on, once what it had is released.
func (in *inode) lockedBy(owner uint64, limit time.Duration) syscall.Errno {
	if !in.awaitDrop(lockOwner{storepb.LockKind_RECORD, owner}, limit) {
		return syscall.ETIMEDOUT
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.locks.owners == nil {
		in.locks.owners = make(map[uint64]bool)
	}
	in.locks.owners[owner] = true
	return 0
}

func (in *inode) isLockedBy(owner uint64) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.locks.owners[owner]
}

// beginDrop is undone by the function that it answers.
func (in *inode) beginDrop(kind storepb.LockKind, owner uint64) (dropped func()) {
	key, done := lockOwner{kind, owner}, make(chan struct{})
	in.mu.Lock()
	defer in.mu.Unlock()
	if kind == storepb.LockKind_RECORD {
		delete(in.locks.owners, owner)
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

// awaitDrops waits for all that are under way.
func (in *inode) awaitDrops(limit time.Duration) {
	in.mu.Lock()
	var owners []lockOwner
	for owner := range in.locks.dropping {
		owners = append(owners, owner)
	}
	in.mu.Unlock()
	for _, owner := range owners {
		in.awaitDrop(owner, limit)
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

// owns notes that an owner has taken a record lock through the handle.
func (h *fileHandle) owns(owner uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.recordOwners, owner) {
		h.recordOwners = append(h.recordOwners, owner)
	}
}

// disowns notes that an owner has closed a descriptor of the handle, and so has lost its record locks. It may take
// new ones through another handle before this one is released.
func (h *fileHandle) disowns(owner uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recordOwners = slices.DeleteFunc(slices.Clone(h.recordOwners), func(other uint64) bool { return other == owner })
}

func (h *fileHandle) owners() []uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recordOwners
}

// lost tells whether a lock was taken through the handle in a session that has ended: whoever has it may
// believe to hold a lock which another host has now.
func (fs *fileSystem) lost(h *fileHandle) bool {
	session := h.lockSession(0)
	return session != 0 && session != fs.ops.Session()
}
