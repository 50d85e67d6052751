package filelock

import (
	"sync"
	"sync/atomic"
	"time"

	"lockfs/raftstore/ids"
)

// lostSession stands for one that has ended: the locks that were taken through a description are lost.
const lostSession = ^ids.Session(0)

// Description is what is known of the locks that were taken through one open file description.
type Description struct {
	mu      sync.Mutex
	session ids.Session // in which locks were taken through it; 0: none was
	closed  time.Time   // when a descriptor of it was closed last, perhaps the last one
	asked   bool        // a request on another host has waited since for the release

	handle uint64
	kept   *atomic.Uint64 // see KeepIn; may be nil
}

// KeepIn gives the description the number of its handle, and has the session noted in a word too, unless that is nil, whenever it
// changes. It comes before anything is locked.
func (d *Description) KeepIn(handle uint64, word *atomic.Uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handle, d.kept = handle, word
	d.keep()
}

func (d *Description) number() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handle
}

// keep is called with the mutex held.
func (d *Description) keep() {
	if d.kept != nil {
		d.kept.Store(uint64(d.session))
	}
}

// Session is the one in which locks are taken through the description: that in use when the first was. inUse 0 changes nothing.
func (d *Description) Session(inUse ids.Session) ids.Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session == 0 {
		d.session = inUse
		d.keep()
	}
	return d.session
}

// lose makes the description one of which the locks are lost.
func (d *Description) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session = lostSession
	d.keep()
}

// forgetSession is for a description through which nothing is locked any more.
func (d *Description) forgetSession() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session != lostSession {
		d.session = 0
		d.keep()
	}
}

// NoteClose notes that a descriptor of it is closed.
func (d *Description) NoteClose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.asked = time.Now(), false
}

// MayAwaitRelease reports whether a request on another host may wait for the release: only while IsClosing, and once for each close.
func (d *Description) MayAwaitRelease() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked || !d.isClosing() {
		return false
	}
	d.asked = true
	return true
}

// ReleaseWait is how long after a close(2) the kernel may take to report that the description is released.
const ReleaseWait = 50 * time.Millisecond

// IsClosing reports whether a descriptor of it was closed so lately that its release may be in progress. A process may have closed a
// copy that it got by fork(2): then none comes.
func (d *Description) IsClosing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.isClosing()
}

// isClosing is called with the mutex held.
func (d *Description) isClosing() bool {
	return !d.closed.IsZero() && time.Since(d.closed) < ReleaseWait
}

// IsLost tells whether the locks that were taken through it were given up.
func (d *Description) IsLost() bool { return d.Session(0) == lostSession }
