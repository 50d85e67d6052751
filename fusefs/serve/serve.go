package serve

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// maxReaders limits the goroutines that wait for a request, besides the one with the last request.
const maxReaders = 2

// Serve handles requests until the kernel ends the connection (true) or the server stops (false). It begins
// with those given back by an earlier server. After a Stop it may be called again.
func (s *Server) Serve(given [][]byte) (gone bool, err error) {
	// A new process finds the descriptor as the old one left it.
	if err := unix.SetNonblock(s.fd, false); err != nil {
		return false, os.NewSyscallError("fcntl", err)
	}
	s.mu.Lock()
	given = append(given, s.pending...)
	s.stopping, s.giving, s.pending = false, false, nil
	s.handled += len(given)
	s.mu.Unlock()
	for _, request := range given {
		s.again(request)
	}
	s.mu.Lock()
	s.beginQueued() // calls with room since the stop
	s.mu.Unlock()
	go s.loop()
	gone = s.awaitReaders()
	if gone {
		s.interrupt(func(*call) bool { return true })
		s.awaitIdle()
	}
	return gone, nil
}

// awaitReaders waits until no goroutine reads or will read. Some may still handle requests.
func (s *Server) awaitReaders() (gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.stopping && !s.isGone || len(s.reading) > 0 {
		s.changed.Wait()
	}
	return s.isGone
}

// loop reads and handles requests. After a read without another reader, it starts one.
func (s *Server) loop() {
	for {
		r := s.startReading()
		if r == nil {
			return
		}
		b := take(&s.large)
		n, err := r.read(s.fd, *b)
		c, goesOn := s.stopReading(r, (*b)[:max(n, 0)], err)
		if !goesOn {
			s.large.Put(b)
			return
		}
		switch {
		case c == nil:
			s.large.Put(b)
		case n <= smallRequest: // it may wait long, as one of many
			request := c.raw
			if request == nil {
				request = bytes.Clone((*b)[:n])
			}
			s.large.Put(b)
			s.handle(c, request)
		default:
			s.handle(c, (*b)[:n])
			s.large.Put(b)
		}
	}
}

// smallRequest is the largest request that keeps no large buffer while it is handled.
const smallRequest = 8192

// startReading returns nil if enough others read, or the server stops.
func (s *Server) startReading() *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || s.isGone || len(s.reading) > maxReaders {
		return nil
	}
	r := new(reader)
	s.reading[r] = struct{}{}
	return r
}

// stopReading returns the request, if there is one, and reports whether to go on. It counts the request, and
// records an interruption, before the reader is gone: a Stop would miss them.
func (s *Server) stopReading(r *reader, request []byte, err error) (c *call, goesOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.tellEnding()
	delete(s.reading, r)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EINTR):
		return nil, true // the request was withdrawn
	case errors.Is(err, unix.EAGAIN):
		return nil, !s.stopping
	case err != nil:
		s.isGone = true
		if !errors.Is(err, unix.ENODEV) {
			s.logger.Error("requests cannot be read any more", "error", err)
		}
		return nil, false
	}
	s.handled++
	// FORGET needs no answer: many of them must not cause many handlers at once.
	if opcode := headerOf(request).Opcode; len(s.reading) == 0 && !s.stopping && opcode != opForget && opcode != opBatchForget {
		go s.loop()
	}
	if c = s.begin(request, false); !s.admission.admit(c, request) {
		s.handled--
		return nil, true
	}
	return c, true
}
