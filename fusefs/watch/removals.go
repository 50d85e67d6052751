package watch

import (
	"slices"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// Removals tell the kernel of watched files that somebody else has removed, for inotify(7) to raise
// delete-self.
//
// The kernel takes the directory's lock for that, which a program may hold that waits for an answer of this
// very process; should that be killed just then, both wait until somebody ends the mount. So only what is
// watched is told of. That does not reach the mount: it is looked up in /proc, after the removal, so that nothing is missed
// that was watched before. There is much to read, on a host with many descriptors for seconds. So that is done seldom, and
// only if the kernel still knows an inode that was removed: what is watched it does not forget.
type Removals struct {
	knows   func(ids.Inode) bool
	watched func() map[ids.Inode]bool
	notify  func(namespace.Removal)
	pending chan namespace.Removal
}

const (
	// watchedInterval is the least time between two searches for what is watched.
	watchedInterval = time.Second
	// watchedShare is how many times as long as a search the pause after it is, at least.
	watchedShare = 20
	// mostPending is how many removals wait for a search; beyond, some are not told of.
	mostPending = 4096
)

// NewRemovals is for a mount with that device number: knows answers what its kernel knows, notify tells it. Watches on other devices
// do not count.
func NewRemovals(knows func(ids.Inode) bool, device uint32, notify func(namespace.Removal)) *Removals {
	return &Removals{
		knows: knows, notify: notify, pending: make(chan namespace.Removal, mostPending),
		watched: func() map[ids.Inode]bool { return Inodes(device) },
	}
}

// Add is for a removal that may have to be told of, by the directory it was in. It does not wait.
func (r *Removals) Add(removed namespace.Removal) {
	select {
	case r.pending <- removed:
	default:
	}
}

// Run tells of what was added, until stop is closed.
func (r *Removals) Run(stop <-chan struct{}) {
	for {
		var pause time.Duration
		select {
		case first := <-r.pending:
			pause = r.tell(first)
		case <-stop:
			return
		}
		select {
		case <-time.After(pause):
		case <-stop:
			return
		}
	}
}

// tell answers how long nothing more is to be told.
func (r *Removals) tell(first namespace.Removal) (pause time.Duration) {
	batch := []namespace.Removal{first}
	for len(r.pending) > 0 {
		batch = append(batch, <-r.pending)
	}
	batch = slices.DeleteFunc(batch, func(removed namespace.Removal) bool { return !r.knows(removed.Ino) })
	if len(batch) == 0 {
		return 0
	}
	began := time.Now()
	watched := r.watched()
	pause = max(watchedInterval, watchedShare*time.Since(began))
	for _, removed := range batch {
		if watched[removed.Ino] {
			r.notify(removed)
		}
	}
	return pause
}
