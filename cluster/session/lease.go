package session

import (
	"sync"
	"time"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
)

// clientSession is one session of a client. A client that was silent for too long loses it and opens
// another.
type clientSession struct {
	id      ids.Session
	numbers *numbers

	mu    sync.Mutex
	until time.Duration // CLOCK_BOOTTIME until which the cluster surely has not given it up
}

// margin is what a mount stops short of the lease's TTL, for clocks that do not run at the same speed.
func margin(ttl time.Duration) time.Duration { return ttl / 10 }

func (s *clientSession) extend(until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = max(s.until, until)
}

// fenced says that the cluster may have given the session up.
func (s *clientSession) fenced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return hostinfo.BootTime() >= s.until
}

// current is the session in use, and how it is replaced.
type current struct {
	mu      sync.Mutex
	session *clientSession // nil while there is none
	changed chan struct{}  // closed at each change

	confirmed uint64 // how often one was
	hopeless  bool   // none was for the whole time of a call, and there is none since
}

func newCurrent() *current { return &current{changed: make(chan struct{})} }

func (u *current) get() (*clientSession, <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.session, u.changed
}

// set answers false if old is not the session in use.
func (u *current) set(old, session *clientSession) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.session != old {
		return false
	}
	u.session = session
	u.change()
	return true
}

// wake lets those look again who wait for a session to be confirmed.
func (u *current) wake() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.change()
}

// change is called with the mutex held.
func (u *current) change() {
	if u.session != nil {
		u.confirmed++
		u.hopeless = false
	}
	close(u.changed)
	u.changed = make(chan struct{})
}

// confirmations answers how often a session was confirmed so far.
func (u *current) confirmations() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.confirmed
}

// endured is told of a call whose time is up, and how often a session had been confirmed when it began. It answers whether that
// begins a time without hope for those who need one.
func (u *current) endured(since uint64) (begins bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.hopeless || u.confirmed != since || u.session != nil && !u.session.fenced() {
		return false
	}
	u.hopeless = true
	return true
}

func (u *current) isHopeless() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.hopeless
}
