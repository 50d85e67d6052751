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

// What a connection is for: its ALPN protocol.
const (
	ProtocolRaft = "lockfs-raft"
	ProtocolRPC  = "lockfs-rpc"
	ProtocolJoin = "lockfs-join"
)

// RaftPreface begins a connection of raft where there is no TLS to say what it is for.
const RaftPreface = "LOCKFSR\n"

// Security is how connections between hosts are encrypted, and how it is known who is at the other end. Where there is none
// (nil) connections are plain, and nobody knows. Unix sockets have none. It is safe for concurrent use.
type Security struct {
	// Server is what a port shakes hands with. It chooses among the three protocols, and refuses whom it does not want.
	Server *tls.Config
	// Client is what a connection for a protocol is dialed with. It checks who answers.
	Client func(protocol string) *tls.Config
	// Caller says whose certificate a connection with a port has brought. It is asked once the handshake has succeeded, but not
	// for ProtocolJoin.
	Caller func(*tls.ConnectionState) (Caller, error)
	// OnRejected is called when a server has ended a connection because it does not want this host's certificate. It may be nil.
	OnRejected func()
	// Vet returns the Vetting of the server at the other end of a dialed connection; nil: its certificate is enough.
	Vet func(*tls.ConnectionState) Vetting
	// Network is what the connections are made over; nil: TCP. With nothing else set they are plain.
	Network Network
}

// isPlain tells whether connections are not encrypted.
func (s *Security) isPlain() bool { return s == nil || s.Client == nil }

// noteRefusal looks for the other side's word, in TLS, at the end of a connection: with TLS 1.3 that comes after the handshake. What comes
// sooner says nothing of the certificate, which has not been seen then: there is no room, for example.
func (s *Security) noteRefusal(err error) {
	var operation *net.OpError
	if s != nil && s.OnRejected != nil && errors.As(err, &operation) && operation.Op == "remote error" {
		s.OnRejected()
	}
}

// unixPrefix begins an address that is the path of a unix socket.
const unixPrefix = "unix:"

// IsSocket tells whether an address is that of a unix socket.
func IsSocket(address string) bool { return strings.HasPrefix(address, unixPrefix) }

// Dial connects to an address for a protocol until ctx ends: HOST:PORT, or unix:PATH, which is for ProtocolRPC only. s may be nil.
// What begins a plain connection is sent.
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

// begin sends what a connection begins with. It goes with what follows, as far as the kernel is concerned.
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

// explainHandshake says more of a server that speaks no TLS.
func explainHandshake(err error) error {
	header := tls.RecordHeaderError{}
	if errors.As(err, &header) {
		return NoTLS
	}
	return fmt.Errorf("TLS: %w", err)
}

// limitUnacknowledged notices a host that is cut off while something is on its way to it; keepalives notice it else.
func limitUnacknowledged(_ context.Context, _, _ string, conn syscall.RawConn) error {
	var err error
	controlled := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadAfter.Milliseconds()))
	})
	return errors.Join(controlled, err)
}

// connectTime is for one attempt: a host that comes back is to be found soon.
const connectTime = time.Second
