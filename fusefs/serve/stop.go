package serve

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy means requests without an end in time.
var ErrBusy = errors.New("requests are under way that do not end")

// Stop makes Serve return. Once all other requests have answers, it returns the requests for the next server.
// It returns ErrBusy after the limit; the connection must then be served again.
func (s *Server) Stop(limit time.Duration) (pending [][]byte, err error) {
	end := time.Now().Add(limit)
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	if err := unix.SetNonblock(s.fd, true); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	s.changed.Broadcast()
	for s.wakeReaders() {
		time.Sleep(wakePause)
	}
	s.giveBack()
	// A handler of an interrupted lock request has to end the request, not to suspend it: no program waits for
	// it any more.
	for !s.interrupt(func(c *call) bool { return c.interrupted && c.raw != nil }) && time.Now().Before(end) {
		time.Sleep(wakePause)
	}
	s.suspend()
	for {
		// Repeated, as a handler may not have been found yet.
		s.interrupt(func(c *call) bool { return c.back && c.header.Opcode != OpSetLkw })
		if pending, done := s.takePending(); done {
			return pending, nil
		}
		if time.Now().After(end) {
			return nil, ErrBusy
		}
		time.Sleep(wakePause)
	}
}

// wakeReaders reports whether a goroutine still reads.
func (s *Server) wakeReaders() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.reading {
		r.wake()
	}
	return len(s.reading) > 0
}

// giveBack marks requests that may wait, so that they go back when they end. The kernel's interrupts have
// been read by now; interrupted requests get answers.
func (s *Server) giveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giving = true
	for _, c := range s.underway {
		c.back = c.raw != nil && !c.interrupted
	}
}

// takePending returns the requests to give back, once no request is under way.
func (s *Server) takePending() (pending [][]byte, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handled > 0 {
		return nil, false
	}
	pending, s.pending = append(s.pending, s.admission.drain()...), nil
	return pending, true
}
