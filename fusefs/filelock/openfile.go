package filelock

import (
	"sync"
	"sync/atomic"
	"time"

	"lockfs/raftstore/ids"
)

// lostSession stands for an ended session: the locks taken through a description are lost.
const lostSession = ^ids.Session(0)

// Description records the locks taken through one open file description.
type Description struct {
	mu      sync.Mutex
	session ids.Session // of its locks; 0: none
	closed  time.Time   // time of the last close of a descriptor, perhaps of the last one
	asked   bool        // a request on another host has waited for the release since

	handle uint64
	kept   *atomic.Uint64 // see KeepIn; may be nil
}

// KeepIn sets the number of the handle, and a word for each change of the session; nil: none. Call it before
// the first lock.
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

// keep needs the mutex.
func (d *Description) keep() {
	if d.kept != nil {
		d.kept.Store(uint64(d.session))
	}
}

// Session returns the session for locks through the description: the one in use at the first lock. inUse 0
// changes nothing.
func (d *Description) Session(inUse ids.Session) ids.Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session == 0 {
		d.session = inUse
		d.keep()
	}
	return d.session
}

// lose marks the locks of the description as lost.
func (d *Description) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session = lostSession
	d.keep()
}

// forgetSession is for a description without locks.
func (d *Description) forgetSession() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session != lostSession {
		d.session = 0
		d.keep()
	}
}

// NoteClose records the close of a descriptor.
func (d *Description) NoteClose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.asked = time.Now(), false
}

// MayAwaitRelease reports whether a request on another host may wait for the release: during IsClosing, once
// for each close.
func (d *Description) MayAwaitRelease() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked || !d.isClosing() {
		return false
	}
	d.asked = true
	return true
}

// ReleaseWait is how long after a close(2) the kernel may take to report the release of the description.
const ReleaseWait = 50 * time.Millisecond

// IsClosing reports whether a descriptor was closed recently, so that its release may be in progress. After
// the close of a copy from fork(2) no release comes.
func (d *Description) IsClosing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.isClosing()
}

// isClosing needs the mutex.
func (d *Description) isClosing() bool {
	return !d.closed.IsZero() && time.Since(d.closed) < ReleaseWait
}

// IsLost reports whether the locks taken through the description were given up.
func (d *Description) IsLost() bool { return d.Session(0) == lostSession }
