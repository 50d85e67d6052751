package serve

import (
	"bytes"
	"encoding/binary"
	"errors"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/thread"
)

// begin records a request, read and counted. given: another server had read it before. It needs the
// mutex.
func (s *Server) begin(request []byte, given bool) *call {
	c := &call{header: headerOf(request), given: given}
	if c.header.Opcode == opInterrupt && len(request) >= headerSize+8 {
		if ended := s.underway[binary.NativeEndian.Uint64(request[headerSize:])]; ended != nil {
			ended.interrupted, c.interrupts = true, ended
			if ended.queued != nil {
				c.ofQueued, ended.interrupt = ended, bytes.Clone(request)
			}
		}
	}
	if s.mayWait(&c.header) {
		c.raw, c.back = bytes.Clone(request), s.giving
	}
	if waitsForAnswer(&c.header) {
		s.underway[c.header.Unique] = c
	}
	return c
}

// handle answers a request, unless the request goes back without an answer.
func (s *Server) handle(c *call, request []byte) {
	out, done := s.roomForAnswer(c, request)
	defer done()
	var answer []byte
	switch {
	case c.ofQueued != nil:
		s.interruptQueued(c.ofQueued)
	case c.refused != 0:
		fuseattr.LogRefusal(s.logger, c.refused, c.reason)
		answer = refusal(c.header.Unique, c.refused)
	case isAskedAgain(&c.header) && s.onlyOnce(request):
		answer = refusal(c.header.Unique, unix.EIO)
	default:
		answer = s.ask(c, request, out)
		s.noteTold(c, answer)
	}
	if !s.toGiveBack(c, answer) && len(answer) > 0 {
		if err := s.write(answer); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENODEV) {
			s.logger.Warn("an answer was refused", "opcode", c.header.Opcode, "error", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handled--; s.handled == 0 {
		s.tellEnding()
	}
}

// roomForAnswer returns a buffer for the answer to a request, and the function that releases it. It limits
// the data of a request which may wait and gives it a buffer of its own.
func (s *Server) roomForAnswer(c *call, request []byte) (out []byte, done func()) {
	data := dataAsked(request)
	if c.raw != nil {
		size := waitingRoom
		if data != nil {
			*data = min(*data, waitingData)
			size += int(*data)
		}
		return make([]byte, size), func() {}
	}
	pool := &s.small
	if data != nil && *data > answerRoom/2 {
		pool = &s.large
	}
	b := take(pool)
	return *b, func() { pool.Put(b) }
}

func (s *Server) ask(c *call, request, out []byte) (answer []byte) {
	s.asks(&c.header)
	length, status := s.protocol.HandleRequest([][]byte{request}, [][]byte{out})
	if !status.Ok() && waitsForAnswer(&c.header) {
		return refusal(c.header.Unique, unix.EIO)
	}
	return out[:length]
}

// toGiveBack reports whether a request goes back without an answer. If the server continues after all, it is
// handled again.
func (s *Server) toGiveBack(c *call, answer []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.underway[c.header.Unique] == c {
		delete(s.underway, c.header.Unique)
	}
	s.release(c)
	if !c.back || c.interrupted || statusOf(answer) != -int32(unix.EINTR) {
		return false
	}
	if s.stopping {
		s.pending = append(s.pending, c.raw)
	} else {
		s.handled++
		go s.again(c.raw) // again takes the mutex
	}
	return true
}

// noteTold records that a handler has the interrupt of the kernel.
func (s *Server) noteTold(interrupt *call, answer []byte) {
	if interrupt.interrupts == nil || len(answer) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	interrupt.interrupts.told = true
}

func (s *Server) write(message []byte) error {
	for {
		_, err := unix.Write(s.fd, message)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// interrupt tells handlers that their callers no longer wait. It reports whether all of these have the
// interrupt: some may not run yet.
func (s *Server) interrupt(which func(*call) bool) (all bool) {
	s.mu.Lock()
	var calls []*call
	for _, c := range s.underway {
		if !c.told && which(c) {
			calls = append(calls, c)
		}
	}
	s.mu.Unlock()
	all = true
	for _, c := range calls {
		in := fuse.InterruptIn{InHeader: fuse.InHeader{Opcode: opInterrupt}, Unique: c.header.Unique}
		in.Length = uint32(binary.Size(in))
		message, _ := binary.Append(nil, binary.NativeEndian, in)
		length, status := s.protocol.HandleRequest([][]byte{message}, [][]byte{make([]byte, answerRoom)})
		s.mu.Lock()
		c.told = c.told || status.Ok() && length == 0 // otherwise its handler does not run yet
		all = all && c.told
		s.mu.Unlock()
	}
	return all
}

// again handles an earlier request, already counted.
func (s *Server) again(request []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.begin(request, true)
	if s.admission.admit(c, request) {
		go s.handle(c, request)
	} else {
		s.handled--
	}
}

// release returns the budget of a call, and begins queued calls. It needs the mutex.
func (s *Server) release(c *call) {
	c.charge.give()
	s.beginQueued()
}

// beginQueued begins queued calls while there is room. It needs the mutex.
func (s *Server) beginQueued() {
	for !s.stopping && !s.isGone {
		next := s.admission.next()
		if next == nil {
			return
		}
		if next.ended {
			continue
		}
		request := next.queued
		next.queued = nil
		s.handled++
		go s.handle(next, request)
		if next.interrupted {
			go s.interruptAgain(next)
		}
	}
}

// interruptQueued handles the interruption of a queued call. If its caller is killed, the call ends with
// EINTR.
func (s *Server) interruptQueued(c *call) {
	if !thread.IsKilled(c.header.Pid) {
		return
	}
	s.mu.Lock()
	ends := c.queued != nil && !c.ended
	if ends {
		c.ended = true
		delete(s.underway, c.header.Unique)
	}
	s.mu.Unlock()
	if ends {
		_ = s.write(refusal(c.header.Unique, unix.EINTR))
	}
}

// interruptAgain tells the handler of a call about an interruption in the queue.
func (s *Server) interruptAgain(c *call) {
	in := fuse.InterruptIn{InHeader: fuse.InHeader{Opcode: opInterrupt}, Unique: c.header.Unique}
	in.Length = uint32(binary.Size(in))
	message, _ := binary.Append(nil, binary.NativeEndian, in)
	out := make([]byte, answerRoom)
	for {
		s.mu.Lock()
		isOver := s.underway[c.header.Unique] != c
		s.mu.Unlock()
		if isOver {
			return
		}
		length, status := s.protocol.HandleRequest([][]byte{bytes.Clone(message)}, [][]byte{out})
		if status.Ok() && statusOf(out[:length]) != -int32(unix.EAGAIN) {
			return
		}
		time.Sleep(wakePause)
	}
}

// Queued returns the number of queued calls.
func (s *Server) Queued() int { return s.countQueued(func(*call) bool { return true }) }

// QueuedInterruptions returns the number of queued calls with an interruption.
func (s *Server) QueuedInterruptions() int {
	return s.countQueued(func(c *call) bool { return c.interrupt != nil })
}

func (s *Server) countQueued(which func(*call) bool) (calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, waiting := range s.admission.queues {
		for _, c := range waiting.calls {
			if !c.ended && which(c) {
				calls++
			}
		}
	}
	return calls
}
