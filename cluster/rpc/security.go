package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ALPN protocols.
const (
	ProtocolRaft = "lockfs-raft"
	ProtocolRPC  = "lockfs-rpc"
	ProtocolJoin = "lockfs-join"
)

// RaftPreface begins a connection of raft without TLS.
const RaftPreface = "LOCKFSR\n"

// Security secures the connections between hosts and identifies their peers. Without it (nil) connections are
// plain and peers unknown. Unix sockets do not use it. It is safe for concurrent use.
type Security struct {
	// Server is a port's configuration. It supports the three protocols, and refuses unwanted peers.
	Server *tls.Config
	// Client returns the configuration to dial for a protocol. It verifies the server.
	Client func(protocol string) *tls.Config
	// Caller returns the host of a connection's certificate after the handshake, except for ProtocolJoin.
	Caller func(*tls.ConnectionState) (Caller, error)
	// OnRejected is called when a server closes a connection because of this host's certificate. It may
	// be nil.
	OnRejected func()
	// Vet returns the Vetting of a dialed server; nil: its certificate is enough.
	Vet func(*tls.ConnectionState) Vetting
	// Network carries the connections; nil: TCP. With nothing else set they are plain.
	Network Network
}

// isPlain reports whether connections are not encrypted.
func (s *Security) isPlain() bool { return s == nil || s.Client == nil }

// noteRefusal looks for a TLS alert of the other side at the end of a connection: with TLS 1.3 it follows the
// handshake. An earlier alert is not about the certificate, which the other side has not seen yet: it may
// have no room, for example.
func (s *Security) noteRefusal(err error) {
	var operation *net.OpError
	if s != nil && s.OnRejected != nil && errors.As(err, &operation) && operation.Op == "remote error" {
		s.OnRejected()
	}
}

// unixPrefix begins the address of a unix socket.
const unixPrefix = "unix:"

// IsSocket reports whether an address is a unix socket.
func IsSocket(address string) bool { return strings.HasPrefix(address, unixPrefix) }

// Dial connects to HOST:PORT for a protocol, or to unix:PATH for ProtocolRPC, until ctx ends. s may be
// nil. It sends the preface of a plain connection.
func (s *Security) Dial(ctx context.Context, address, protocol string) (net.Conn, error) {
	if path, found := strings.CutPrefix(address, unixPrefix); found {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		return begin(conn, err, Preface)
	}
	plain, err := s.dialPlain(ctx, address, protocol)
	switch {
	case s.isPlain() && protocol == ProtocolRaft:
		return begin(plain, err, RaftPreface)
	case s.isPlain():
		return begin(plain, err, Preface)
	case err != nil:
		return nil, err
	}
	secure := tls.Client(plain, s.Client(protocol))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, explainHandshake(err)
	}
	if protocol == ProtocolRaft {
		return secure, nil
	}
	return begin(secure, nil, Preface)
}

func (s *Security) dialPlain(ctx context.Context, address, protocol string) (net.Conn, error) {
	if s != nil && s.Network != nil {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		return s.Network.Dial(ctx, address)
	}
	dialer := net.Dialer{
		Timeout:         connectTime,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: deadAfter, Interval: deadAfter / 3, Count: 3},
	}
	if protocol == ProtocolRPC {
		dialer.ControlContext = limitUnacknowledged
	}
	return dialer.DialContext(ctx, "tcp", address)
}

// begin sends the preface of a connection, without a packet of its own.
func begin(conn net.Conn, err error, preface string) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(deadAfter))
	if _, err := conn.Write([]byte(preface)); err != nil {
		_ = conn.Close()
		return nil, explainClose(err)
	}
	_ = conn.SetWriteDeadline(time.Time{})
	return conn, nil
}

// explainHandshake adds to the error of a server without TLS.
func explainHandshake(err error) error {
	header := tls.RecordHeaderError{}
	if errors.As(err, &header) {
		return NoTLS
	}
	return fmt.Errorf("TLS: %w", err)
}

// limitUnacknowledged detects an unreachable host while data is under way; keepalives detect it otherwise.
func limitUnacknowledged(_ context.Context, _, _ string, conn syscall.RawConn) error {
	var err error
	controlled := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadAfter.Milliseconds()))
	})
	return errors.Join(controlled, err)
}

// connectTime limits one attempt, to find a returning host soon.
const connectTime = time.Second

// Network replaces TCP between hosts in a simulation.
type Network interface {
	// Listen listens at HOST:PORT. Accepted connections have remote addresses of this form.
	Listen(address string) (net.Listener, error)
	// Dial connects to an address; without a listener the error is syscall.ECONNREFUSED.
	Dial(ctx context.Context, address string) (net.Conn, error)
}

func (s *Security) listen(address string) (net.Listener, error) {
	if s != nil && s.Network != nil {
		return s.Network.Listen(address)
	}
	return net.Listen("tcp", address)
}
