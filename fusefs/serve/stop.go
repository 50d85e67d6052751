package serve

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy says that requests did not end in time.
var ErrBusy = errors.New("requests are under way that do not end")

// Stop has Serve return, and answers the requests that are to be given to whoever serves the connection next, once everything else
// that was read is answered. With ErrBusy that took longer than the limit; the connection is to be served again then.
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
	s.suspend()
	for {
		// Again, for a handler may not have been found yet.
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

// wakeReaders answers whether somebody still reads.
func (s *Server) wakeReaders() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.reading {
		r.wake()
	}
	return len(s.reading) > 0
}

// giveBack has requests that may wait be given back when they end. Interrupts of the kernel have been read by now, and their requests are
// answered.
func (s *Server) giveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giving = true
	for _, c := range s.underway {
		c.back = c.raw != nil && !c.interrupted
	}
}

// takePending answers what is to be given back, once nothing is under way.
func (s *Server) takePending() (pending [][]byte, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handled > 0 {
		return nil, false
	}
	pending, s.pending = append(s.pending, s.admission.drain()...), nil
	return pending, true
}
