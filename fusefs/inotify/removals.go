package inotify

import (
	"slices"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// Removals notify the kernel of watched files removed on other hosts, so that inotify(7) raises delete-self.
//
// For this the kernel takes the directory's lock. A program with this lock may wait for an answer of this
// very process. After a crash at this moment both would wait until the end of the mount. So Removals notify
// only of watched files.
//
// The mount does not learn of watches. Removals read them from /proc, after the removal, to miss no earlier
// watch. This takes seconds on a host with many descriptors, so it is rare, and only for removed inodes which
// the kernel still knows: it never forgets a watched one.
type Removals struct {
	knows   func(ids.Inode) bool
	watched func() map[ids.Inode]bool
	notify  func(namespace.Removal)
	pending chan namespace.Removal
}

const (
	// watchedInterval is the minimum time between two searches for watches.
	watchedInterval = time.Second
	// watchedShare is the minimum ratio of a pause to the search before it.
	watchedShare = 20
	// mostPending limits the removals waiting for a search; Add drops further ones.
	mostPending = 4096
)

// NewRemovals returns the removals of a mount with a device number. knows reports whether the kernel knows an
// inode; notify notifies the kernel. Watches on other devices do not count.
func NewRemovals(knows func(ids.Inode) bool, device uint32, notify func(namespace.Removal)) *Removals {
	return &Removals{
		knows: knows, notify: notify, pending: make(chan namespace.Removal, mostPending),
		watched: func() map[ids.Inode]bool { return Inodes(device) },
	}
}

// Add adds a removal, without a wait.
func (r *Removals) Add(removed namespace.Removal) {
	select {
	case r.pending <- removed:
	default:
	}
}

// Run notifies of added removals, until stop is closed.
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

// tell handles the pending removals, and returns the pause before the next.
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
