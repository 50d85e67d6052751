package serve

import (
	"errors"
	"log/slog"
	"os"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/kernel"
)

// maxReaders is how many goroutines may wait for a request beside the one that has just got one.
const maxReaders = 2

// Server serves one connection.
type Server struct {
	protocol *fuse.ProtocolServer
	device   *os.File
	fd       int
	logger   *slog.Logger
	mayWait  func(header *fuse.InHeader) bool

	buffers sync.Pool // of *buffers

	mu       sync.Mutex
	underway map[uint64]*call // that wait for an answer, by the kernel's numbers
	handled  int              // requests that are being handled
	changed  *sync.Cond       // nobody reads, or is handled, any more
	reading  map[*reader]struct{}
	stopping bool
	isGone   bool     // the kernel has let go
	pending  [][]byte // given back
}

// call is a request that is being handled.
type call struct {
	header fuse.InHeader
	raw    []byte // of one that may wait; nil: it may not
	back   bool   // it was ended here, to be given back

	interrupted bool // by the kernel
}

// buffers are those of one request.
type buffers struct{ in, out []byte }

// answerRoom is for what an answer has besides data.
const answerRoom = 4096

// New is for a connection that was opened as init says. mayWait tells of requests that may wait as long as they like: their handlers return
// EINTR soon after they were interrupted, unless they have another answer.
func New(
	fs fuse.RawFileSystem, device *os.File, init *Init, options *fuse.MountOptions, mayWait func(*fuse.InHeader) bool, logger *slog.Logger,
) (*Server, error) {
	s := &Server{
		protocol: fuse.NewProtocolServer(fs, options), device: device, fd: int(device.Fd()), logger: logger, mayWait: mayWait,
		underway: make(map[uint64]*call), reading: make(map[*reader]struct{}),
	}
	s.buffers.New = func() any {
		return &buffers{in: make([]byte, kernel.MaxWrite+kernel.BlockSize), out: make([]byte, kernel.MaxWrite+answerRoom)}
	}
	s.changed = sync.NewCond(&s.mu)
	return s, init.tell(s.protocol)
}

// Serve handles requests, first those that were given back when the connection was served before, until the kernel lets go (true)
// or it is stopped (false). After a Stop it may be called again.
func (s *Server) Serve(given [][]byte) (gone bool, err error) {
	// A new process finds the descriptor as the old one left it.
	if err := unix.SetNonblock(s.fd, false); err != nil {
		return false, os.NewSyscallError("fcntl", err)
	}
	s.mu.Lock()
	given = append(given, s.pending...)
	s.stopping, s.pending = false, nil
	s.mu.Unlock()
	for _, request := range given {
		s.again(request)
	}
	go s.loop()
	gone = s.awaitReaders()
	if gone {
		s.interrupt(func(*call) bool { return true })
		s.awaitIdle()
	}
	return gone, nil
}

// awaitReaders waits until nobody reads or is to read any more. Some may still handle what they have read.
func (s *Server) awaitReaders() (gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.stopping && !s.isGone || len(s.reading) > 0 {
		s.changed.Wait()
	}
	return s.isGone
}

// again handles a request that was read before.
func (s *Server) again(request []byte) {
	b := s.take()
	n := copy(b.in, request)
	c := s.begin(b.in[:n])
	go func() {
		defer s.give(b)
		s.handle(c, b, n)
	}()
}

func (s *Server) awaitIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.handled > 0 {
		s.changed.Wait()
	}
}

func (s *Server) take() *buffers  { return s.buffers.Get().(*buffers) }
func (s *Server) give(b *buffers) { s.buffers.Put(b) }

// loop reads and handles requests. Whoever gets one while nobody else waits for the next has another one do that.
func (s *Server) loop() {
	for {
		r := s.startReading()
		if r == nil {
			return
		}
		b := s.take()
		n, err := r.read(s.fd, b.in)
		if !s.stopReading(r, b.in[:max(n, 0)], err) {
			s.give(b)
			return
		}
		if err == nil {
			s.handle(s.begin(b.in[:n]), b, n)
		}
		s.give(b)
	}
}

// startReading answers nil if enough others read, or nobody is to.
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

// stopReading answers whether to go on.
func (s *Server) stopReading(r *reader, request []byte, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	delete(s.reading, r)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EINTR):
		return true // the request was withdrawn
	case errors.Is(err, unix.EAGAIN):
		return !s.stopping
	case err != nil:
		s.isGone = true
		if !errors.Is(err, unix.ENODEV) {
			s.logger.Error("requests cannot be read any more", "error", err)
		}
		return false
	}
	// Those that tell what was forgotten wait for no answer: who sends many is not to have many handled at once.
	if opcode := headerOf(request).Opcode; len(s.reading) == 0 && !s.stopping && opcode != opForget && opcode != opBatchForget {
		go s.loop()
	}
	return true
}
