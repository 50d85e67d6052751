package rpc

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"lockfs/raftstore/budget"
)

// Server answers calls.
type Server struct {
	service
	onFull   func(Caller)
	draining atomic.Int32 // refused connections before their close

	settled time.Duration // age after which a connection may be replaced; 0: never

	mu     sync.Mutex
	conns  map[net.Conn]*connInfo
	closed bool
}

// connInfo is the caller of a connection.
type connInfo struct {
	Caller
	since time.Time
}

// NewServer serves a node. It calls malformed for each invalid request, and crowded for each connection
// refused for lack of room.
func NewServer(node Node, malformed func(), crowded func(Caller)) *Server {
	return newServer(handlersOf(node), withinFiles(standardLimits, filesOfCalls), standardTimes, malformed, crowded)
}

// NewSocketServer serves unix sockets.
func NewSocketServer(node Node, malformed func(), crowded func(Caller)) *Server {
	return newServer(handlersOf(node), withinFiles(socketLimits, filesOfSockets), standardTimes, malformed, crowded)
}

// NewJoinServer serves hosts without a certificate: it proves its membership and enrolls them. A new
// connection may replace an old one: otherwise strangers could occupy all of them.
func NewJoinServer(e Enroller, malformed func(), crowded func(Caller)) *Server {
	handlers := map[byte]Handler{enrollMethod: {Do: handle(e.Enroll)}, proveServerMethod: {Do: handle(e.ProveServer)}}
	s := newServer(handlers, withinFiles(joinLimits, filesOfJoiners), joinTimes, malformed, crowded)
	s.settled = joinSettled
	return s
}

// AcceptForwarded makes the server accept forwarded requests. judge returns nil if the server by may
// forward a request of the caller, or MayNotForward, or a *RefusedError for the caller. Call it before
// the server serves.
func (s *Server) AcceptForwarded(judge func(by, caller Caller) error) { s.judge = judge }

func newServer(handlers map[byte]Handler, l limits, t times, malformed func(), crowded func(Caller)) *Server {
	return &Server{
		service: service{handlers: handlers, malformed: malformed, quota: newQuota(l), times: t},
		onFull:  crowded, conns: make(map[net.Conn]*connInfo),
	}
}

// joinSettled is the time to enroll before others may take the connection.
const joinSettled = time.Second

// acceptPause is the pause after a lack of resources.
const acceptPause = 50 * time.Millisecond

// Serve serves the connections of a listener until it is closed, or fails. A [Port] and a unix socket
// identify the callers.
func (s *Server) Serve(listener net.Listener) error {
	return acceptAll(listener, func(conn net.Conn) { go s.serve(conn) })
}

// acceptAll accepts connections until the listener is closed, or fails.
func acceptAll(listener net.Listener, take func(net.Conn)) error {
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			take(conn)
		case !isPassing(err):
			return err
		default:
			time.Sleep(acceptPause)
		}
	}
}

// isPassing reports whether a listener works again later, or only one connection has failed.
func isPassing(err error) bool {
	for _, passing := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// Budgets returns the budgets of the server's callers.
func (s *Server) Budgets() []*budget.Pool { return []*budget.Pool{s.quota.connections} }

// Close closes all connections.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.conns {
		abort(conn)
	}
	s.quota.close()
}

// HangUp closes the connections of some callers, with their calls.
func (s *Server) HangUp(on func(Caller) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn, who := range s.conns {
		if on(who.Caller) {
			abort(conn)
		}
	}
}

func (s *Server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	caller, err := callerAt(conn)
	if err != nil {
		return // it has gone
	}
	standing := caller.Standing()
	accounts, err := s.quota.connect(caller, standing)
	if err != nil && s.makeRoom(caller) {
		standing = budget.Replacing
		accounts, err = s.quota.connect(caller, standing)
	}
	if err != nil {
		s.onFull(caller)
		s.rejectFull(conn)
		return
	}
	defer s.quota.disconnect(caller, standing)
	if s.register(conn, caller) {
		defer s.unregister(conn)
		newServerConn(&s.service, conn, caller, accounts).serve()
	}
}

// makeRoom closes the oldest connection: of the same peer if it has too many. It returns false if none is old
// enough. Closed connections count until their calls have ended, so a peer cannot have those of others closed
// by many connections at once.
func (s *Server) makeRoom(caller Caller) bool {
	if s.settled == 0 {
		return false
	}
	from, isFull := peerOf(caller), s.quota.connections.Used(caller.User()) >= uint64(s.quota.limits.connectionsPerHost)
	s.mu.Lock()
	defer s.mu.Unlock()
	var goes net.Conn
	for conn, who := range s.conns {
		if isFull && peerOf(who.Caller) != from {
			continue
		}
		if goes == nil || who.since.Before(s.conns[goes].since) {
			goes = conn
		}
	}
	if goes == nil || time.Since(s.conns[goes].since) < s.settled {
		return false
	}
	delete(s.conns, goes)
	abort(goes)
	return true
}

// rejectFull sends the reason to some peers; this takes a connection and a moment, too.
func (s *Server) rejectFull(conn net.Conn) {
	if s.draining.Add(1) <= maxDraining {
		refuseConnection(conn, Crowded)
	}
	s.draining.Add(-1)
}

func (s *Server) register(conn net.Conn, caller Caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.conns[conn] = &connInfo{caller, time.Now()}
	}
	return !s.closed
}

func (s *Server) unregister(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}
