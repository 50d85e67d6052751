package rpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
)

// callsAtOnce bounds the calls of one connection that are being done; more wait in it.
const callsAtOnce = 4096

// Method answers a request. What it is called with is its own to keep. An error is told to the caller in words.
type Method struct {
	Do    func(ctx context.Context, request []byte) (proto.Message, error)
	Quick bool // it never waits, so it is done before the next request is read
}

// Server answers calls.
type Server struct {
	Methods    map[byte]Method
	MaxRequest int    // bytes
	Malformed  func() // called for what is no request; nil: nothing is

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// Serve answers on the connections of a listener until that is closed.
func (s *Server) Serve(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go s.serve(conn)
	}
}

// Close ends all connections.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
}

func (s *Server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	if !s.register(conn) {
		return
	}
	defer s.unregister(conn)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := outgoing{conn: conn}
	from := bufio.NewReader(conn)
	if preface, err := from.Peek(len(Preface)); err != nil || string(preface) != Preface {
		s.malformed()
		return
	}
	_, _ = from.Discard(len(Preface))
	places := make(chan struct{}, callsAtOnce)
	for {
		call, err := read(from, s.MaxRequest)
		if err != nil {
			if errors.Is(err, errFrame) {
				s.malformed()
			}
			return
		}
		method, found := s.Methods[call.method]
		switch {
		case !found:
			s.malformed()
			o.send(encodeError(call.number, fmt.Sprintf("there is no method %d", call.method)))
		case method.Quick:
			o.answer(ctx, method, call)
		default:
			places <- struct{}{}
			go func() {
				o.answer(ctx, method, call)
				<-places
			}()
		}
	}
}

func (s *Server) register(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.conns == nil {
		s.conns = make(map[net.Conn]struct{})
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *Server) unregister(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

func (s *Server) malformed() {
	if s.Malformed != nil {
		s.Malformed()
	}
}

// outgoing sends answers, each as a whole.
type outgoing struct {
	conn net.Conn
	mu   sync.Mutex
}

func (o *outgoing) answer(ctx context.Context, method Method, call frame) {
	reply, err := method.Do(ctx, call.message)
	var message []byte
	if err == nil {
		message, err = encode(call.number, answered, reply)
	}
	if err != nil {
		message = encodeError(call.number, err.Error())
	}
	o.send(message)
}

// send ends the connection when that fails: its reader notices.
func (o *outgoing) send(message []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.conn.SetWriteDeadline(time.Now().Add(deadAfter))
	if err == nil {
		_, err = o.conn.Write(message)
	}
	if err != nil {
		_ = o.conn.Close()
	}
}
