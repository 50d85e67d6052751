package rpc

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Server answers calls.
type Server struct {
	service
	crowded func(netip.Addr)

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// NewServer answers for a node. malformed is called for each request that nobody should have sent, crowded for each connection,
// from that address, that there was no room for.
func NewServer(node Node, malformed func(), crowded func(netip.Addr)) *Server {
	return newServer(handlersOf(node), standardLimits, standardTimes, malformed, crowded)
}

func newServer(handlers map[byte]Handler, l limits, t times, malformed func(), crowded func(netip.Addr)) *Server {
	return &Server{
		service: service{handlers: handlers, malformed: malformed, room: newRoom(l), times: t},
		crowded: crowded, conns: make(map[net.Conn]struct{}),
	}
}

// acceptPause is for a process or host that has no room for another connection.
const acceptPause = 50 * time.Millisecond

// Serve answers on the connections of a listener until that is closed, or fails.
func (s *Server) Serve(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			go s.serve(conn)
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

// Close ends all connections.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.room.close()
}

func (s *Server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	from := addressOf(conn)
	account := s.room.enter(from)
	if account == nil {
		s.crowded(from)
		return
	}
	defer s.room.leave(from)
	if s.register(conn) {
		defer s.unregister(conn)
		newServing(&s.service, conn, account).serve()
	}
}

// addressOf answers without the port.
func addressOf(conn net.Conn) netip.Addr {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap()
}

func (s *Server) register(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.conns[conn] = struct{}{}
	}
	return !s.closed
}

func (s *Server) unregister(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}
