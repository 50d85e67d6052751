package serve

import (
	"log/slog"
	"os"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/kernel"
	"lockfs/raftstore/budget"
)

// Server serves one connection.
type Server struct {
	protocol *fuse.ProtocolServer
	device   *os.File
	fd       int
	logger   *slog.Logger
	asks     func(header *fuse.InHeader)
	mayWait  func(header *fuse.InHeader) bool
	suspend  func()
	onlyOnce func(request []byte) bool

	large sync.Pool // of *[]byte, for the largest request or answer
	small sync.Pool // of *[]byte, for answers without much data

	mu       sync.Mutex
	underway map[uint64]*call // that wait for an answer, by the kernel's numbers
	handled  int              // requests that are being handled
	changed  *sync.Cond       // nobody reads, or is handled, any more
	reading  map[*reader]struct{}
	stopping bool
	giving   bool     // nothing is read any more, and requests that may wait are to be given back
	isGone   bool     // the kernel has let go
	pending  [][]byte // given back

	admission admission
}

// New is for a connection that was opened as init says. asks is called before each request is handled. mayWait tells of requests that may
// wait as long as they like: their handlers return EINTR soon after they were interrupted, unless they have another answer. So do those
// for OpSetLkw after a call of suspend, which are not interrupted to be given back. onlyOnce tells of requests that are not handled if
// another process may have done so before it was killed: those are answered EIO.
func New(
	fs fuse.RawFileSystem, device *os.File, init *Init, options *fuse.MountOptions,
	asks func(*fuse.InHeader), mayWait func(*fuse.InHeader) bool, suspend func(), onlyOnce func([]byte) bool, budgets Budgets, logger *slog.Logger,
) (*Server, error) {
	s := &Server{
		protocol: fuse.NewProtocolServer(fs, options), device: device, fd: int(device.Fd()), logger: logger,
		asks: asks, mayWait: mayWait, suspend: suspend, onlyOnce: onlyOnce,
		underway: make(map[uint64]*call), reading: make(map[*reader]struct{}),
		admission: admission{Budgets: budgets, queues: make(map[budget.User]*queue)},
	}
	s.large.New = func() any { return new(make([]byte, kernel.MaxWrite+answerRoom)) }
	s.small.New = func() any { return new(make([]byte, answerRoom)) }
	s.changed = sync.NewCond(&s.mu)
	return s, init.tell(s.protocol)
}

// tellEnding wakes those who wait for the end of what is under way; nobody else is woken for each request. The caller holds the lock.
func (s *Server) tellEnding() {
	if s.stopping || s.isGone {
		s.changed.Broadcast()
	}
}

func (s *Server) awaitIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.handled > 0 {
		s.changed.Wait()
	}
}

func take(from *sync.Pool) *[]byte { return from.Get().(*[]byte) }
