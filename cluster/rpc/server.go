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
	draining atomic.Int32 // connections that are told that there is no room for them

	settled time.Duration // after it a connection goes for one that there is no room for; 0: none does

	mu     sync.Mutex
	conns  map[net.Conn]*connInfo
	closed bool
}

// connInfo is who has a connection.
type connInfo struct {
	Caller
	since time.Time
}

// NewServer answers for a node. malformed is called for each request that nobody should have sent, crowded for each connection that
// there was no room for.
func NewServer(node Node, malformed func(), crowded func(Caller)) *Server {
	return newServer(handlersOf(node), withinFiles(standardLimits, filesOfCalls), standardTimes, malformed, crowded)
}

// NewSocketServer answers on unix sockets.
func NewSocketServer(node Node, malformed func(), crowded func(Caller)) *Server {
	return newServer(handlersOf(node), withinFiles(socketLimits, filesOfSockets), standardTimes, malformed, crowded)
}

// NewJoinServer answers hosts that have no certificate yet: it proves that this is a server, and enrolls them. It makes room for each that
// comes: strangers could take all there is, and keep it.
func NewJoinServer(e Enroller, malformed func(), crowded func(Caller)) *Server {
	handlers := map[byte]Handler{enrollMethod: {Do: handle(e.Enroll)}, proveServerMethod: {Do: handle(e.ProveServer)}}
	s := newServer(handlers, withinFiles(joinLimits, filesOfJoiners), joinTimes, malformed, crowded)
	s.settled = joinSettled
	return s
}

// AcceptForwarded has the server accept requests that another server forwards. judge returns nil if that server, by, may forward a request
// of the caller, or MayNotForward, or a *RefusedError that tells the caller why it is refused itself. Without it, no forwarded request is
// accepted. It is to be called before the server serves.
func (s *Server) AcceptForwarded(judge func(by, caller Caller) error) { s.judge = judge }

func newServer(handlers map[byte]Handler, l limits, t times, malformed func(), crowded func(Caller)) *Server {
	return &Server{
		service: service{handlers: handlers, malformed: malformed, quota: newQuota(l), times: t},
		onFull:  crowded, conns: make(map[net.Conn]*connInfo),
	}
}

// joinSettled is how long somebody has to enroll whoever else wants to.
const joinSettled = time.Second

// acceptPause is for a process or host that has no room for another connection.
const acceptPause = 50 * time.Millisecond

// Serve answers on the connections of a listener until that is closed, or fails. Who calls is known on one of a [Port], and on a unix
// socket.
func (s *Server) Serve(listener net.Listener) error {
	return acceptAll(listener, func(conn net.Conn) { go s.serve(conn) })
}

// acceptAll takes what comes to a listener until that is closed, or fails.
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

// isPassing tells whether a listener works again once somebody else needs less, or has failed for that one connection only.
func isPassing(err error) bool {
	for _, passing := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// Budgets returns the budgets that the server counts for its callers.
func (s *Server) Budgets() []*budget.Pool { return []*budget.Pool{s.quota.connections} }

// Close ends all connections.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.conns {
		abort(conn)
	}
	s.quota.close()
}

// HangUp ends the connections of some, and the calls that they have under way.
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
	if err != nil && s.makeRoom(peerOf(caller)) {
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

// makeRoom hangs up on the connection that has been there for longest: of the same origin if that has too many. It is false if none
// has had its time.
func (s *Server) makeRoom(from peer) bool {
	if s.settled == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := func(of func(*connInfo) bool) (goes net.Conn, count int) {
		for conn, who := range s.conns {
			if !of(who) {
				continue
			}
			if count++; goes == nil || who.since.Before(s.conns[goes].since) {
				goes = conn
			}
		}
		return goes, count
	}
	goes, count := oldest(func(who *connInfo) bool { return peerOf(who.Caller) == from })
	if count < s.quota.limits.connectionsPerHost {
		goes, _ = oldest(func(*connInfo) bool { return true })
	}
	if goes == nil || time.Since(s.conns[goes].since) < s.settled {
		return false
	}
	delete(s.conns, goes)
	abort(goes)
	return true
}

// rejectFull tells some of those why they are hung up on: they take a connection and a moment, too.
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
