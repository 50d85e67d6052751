package session

import (
	"sync"
	"time"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
)

// clientSession is one session of a client. It expires without keepalives; the client then opens another.
type clientSession struct {
	id      ids.Session
	numbers *sequence

	mu    sync.Mutex
	until time.Duration // CLOCK_BOOTTIME before which the session cannot expire
}

// margin is the part of the TTL which a mount does not use, to allow for clock drift.
func margin(ttl time.Duration) time.Duration { return ttl / 10 }

func (s *clientSession) extend(until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = max(s.until, until)
}

// expiredLocally reports whether the session may have expired.
func (s *clientSession) expiredLocally() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return hostinfo.BootTime() >= s.until
}

type activeSession struct {
	mu      sync.Mutex
	session *clientSession // nil: none
	changed chan struct{}  // closed at each change

	confirmed uint64 // number of confirmations
	hopeless  bool   // no confirmation during a whole call, nor since
}

func newActiveSession() *activeSession { return &activeSession{changed: make(chan struct{})} }

func (a *activeSession) get() (*clientSession, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.session, a.changed
}

// set replaces the session, and reports false if old is not in use.
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

func (a *activeSession) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.change()
}

// change notifies the waiters. The caller holds the mutex.
func (a *activeSession) change() {
	if a.session != nil {
		a.confirmed++
		a.hopeless = false
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *activeSession) confirmations() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.confirmed
}

// markUnconfirmed records a timeout. since is the number of confirmations at the begin of the call. It
// reports whether the session becomes unconfirmed with this call.
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
