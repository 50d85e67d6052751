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
	numbers *sequence

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

// expiredLocally says that the cluster may have given the session up.
func (s *clientSession) expiredLocally() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return hostinfo.BootTime() >= s.until
}

// activeSession is the session in use, and how it is replaced.
type activeSession struct {
	mu      sync.Mutex
	session *clientSession // nil while there is none
	changed chan struct{}  // closed at each change

	confirmed uint64 // how often one was
	hopeless  bool   // none was for the whole time of a call, and there is none since
}

func newActiveSession() *activeSession { return &activeSession{changed: make(chan struct{})} }

func (a *activeSession) get() (*clientSession, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.session, a.changed
}

// set answers false if old is not the session in use.
func (a *activeSession) set(old, session *clientSession) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.session != old {
		return false
	}
	a.session = session
	a.change()
	return true
}

// wake lets those look again who wait for a session to be confirmed.
func (a *activeSession) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.change()
}

// change is called with the mutex held.
func (a *activeSession) change() {
	if a.session != nil {
		a.confirmed++
		a.hopeless = false
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

// confirmations answers how often a session was confirmed so far.
func (a *activeSession) confirmations() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.confirmed
}

// markUnconfirmed is told of a call whose time is up, and how often a session had been confirmed when it began. It answers whether that
// begins a time without hope for those who need one.
func (a *activeSession) markUnconfirmed(since uint64) (begins bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hopeless || a.confirmed != since || a.session != nil && !a.session.expiredLocally() {
		return false
	}
	a.hopeless = true
	return true
}

func (a *activeSession) isUnconfirmed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hopeless
}
