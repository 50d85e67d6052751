package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lockfs/raftstore/hostinfo"
)

// clientSession is one session of a client. A client that was silent for too long loses it and opens
// another.
type clientSession struct {
	id      uint64
	numbers *numbers

	mu    sync.Mutex
	until time.Duration // CLOCK_BOOTTIME until which the cluster surely has not given it up
}

// margin is what a mount stops short of the term, for clocks that do not run at the same speed.
func margin(term time.Duration) time.Duration { return term / 10 }

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

// holder is the session in use, and how it is replaced.
type holder struct {
	mu      sync.Mutex
	session *clientSession // nil while there is none
	changed chan struct{}  // closed at each change

	confirmed uint64 // how often one was
	hopeless  bool   // none was for the whole time of a call, and there is none since
}

func newHolder() *holder { return &holder{changed: make(chan struct{})} }

func (h *holder) get() (*clientSession, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session, h.changed
}

// set answers false if old is not the session in use.
func (h *holder) set(old, session *clientSession) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session != old {
		return false
	}
	h.session = session
	h.change()
	return true
}

// wake lets those look again who wait for a session to be confirmed.
func (h *holder) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.change()
}

// change is called with the mutex held.
func (h *holder) change() {
	if h.session != nil {
		h.confirmed++
		h.hopeless = false
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// confirmations answers how often a session was confirmed so far.
func (h *holder) confirmations() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.confirmed
}

// endured is told of a call whose time is up, and how often a session had been confirmed when it began. It answers whether that
// begins a time without hope for those who need one.
func (h *holder) endured(since uint64) (begins bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hopeless || h.confirmed != since || h.session != nil && !h.session.fenced() {
		return false
	}
	h.hopeless = true
	return true
}

func (h *holder) isHopeless() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hopeless
}

// live answers a session that the cluster has surely not given up yet, and waits for one if need be.
func (c *Client) live(ctx context.Context) (*clientSession, error) {
	for {
		s, changed := c.holder.get()
		if s != nil && !s.fenced() {
			return s, nil
		}
		if s != nil {
			c.hurry()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("the session is not confirmed: %w", ctx.Err())
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
}
