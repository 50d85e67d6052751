package serve

import (
	"log/slog"
	"os"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
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
	underway map[uint64]*call // waiting for an answer, by the kernel's numbers
	handled  int              // requests under way
	changed  *sync.Cond       // the end of all reading, or of all requests
	reading  map[*reader]struct{}
	stopping bool
	giving   bool     // no more reads; requests that may wait go back
	isGone   bool     // the kernel has ended the connection
	pending  [][]byte // given back

	admission admission
}

// New returns a server for a connection with a handshake. It calls asks before it handles each request.
// mayWait reports whether a request has no time limit. After an interruption, the handler of such a request
// returns EINTR soon, unless it has another answer. Handlers of OpSetLkw do so after a call of suspend
// instead. onlyOnce reports whether to answer EIO to a request which a crashed process may have done.
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
	s.large.New = func() any { return new(make([]byte, fuseattr.MaxWrite+answerRoom)) }
	s.small.New = func() any { return new(make([]byte, answerRoom)) }
	s.changed = sync.NewCond(&s.mu)
	return s, init.tell(s.protocol)
}

// tellEnding wakes the goroutines which wait for the end of requests. It needs the mutex.
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
