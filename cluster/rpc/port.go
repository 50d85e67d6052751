package rpc

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// handshakeTime limits the handshake of a connection.
const handshakeTime = 5 * time.Second

// Port is one TCP address for all traffic between hosts. It passes each connection to a server by its ALPN
// protocol, or without TLS by its first bytes. Slow handshakes do not delay others.
type Port struct {
	listener net.Listener
	security *Security
	report   PortReport
	times    portTimes
	halfOpen *halfOpen

	raft, rpc, join *connListener

	mu     sync.Mutex
	rafts  map[net.Conn]Caller
	closed bool
}

// PortReport has callbacks for refused connections. Many goroutines call them.
type PortReport struct {
	Crowded   func(Caller)        // too many half-open connections
	Failed    func(Caller, error) // failed handshake, or not permitted
	Malformed func()              // another protocol
}

// portTimes limit the waits for the peer.
type portTimes struct{ handshake, preface time.Duration }

var standardPortTimes = portTimes{handshake: handshakeTime, preface: standardTimes.preface}

// Listen opens a port; [Port.Serve] accepts connections. Without TLS security is nil, and all connections
// but raft's are for ProtocolRPC.
func Listen(address string, security *Security, report PortReport) (*Port, error) {
	listener, err := security.listen(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return newPort(listener, security, report, standardHalfOpen(), standardPortTimes), nil
}

func newPort(listener net.Listener, security *Security, report PortReport, h *halfOpen, t portTimes) *Port {
	at := listener.Addr()
	return &Port{
		listener: listener, security: security, report: report, times: t, halfOpen: h,
		raft: newConnListener(at), rpc: newConnListener(at), join: newConnListener(at), rafts: make(map[net.Conn]Caller),
	}
}

// Raft accepts raft's connections.
func (p *Port) Raft() net.Listener { return p.raft }

// RPC accepts connections with known callers, for a [Server].
func (p *Port) RPC() net.Listener { return p.rpc }

// Join accepts connections for a server of [NewJoinServer].
func (p *Port) Join() net.Listener { return p.join }

// Addr returns the address of the port.
func (p *Port) Addr() net.Addr { return p.listener.Addr() }

// Serve accepts connections until the port is closed, or fails.
func (p *Port) Serve() error {
	return acceptAll(p.listener, func(conn net.Conn) {
		if pending := p.halfOpen.enter(conn); pending != nil {
			go p.greet(pending)
			return
		}
		p.report.Crowded(Caller{Role: p.stranger(), Address: addressOf(conn)})
		p.turnAway(conn)
	})
}

// stranger returns the role of an unknown caller.
func (p *Port) stranger() Role {
	if p.security.isPlain() {
		return RoleInsecure
	}
	return RoleJoiner
}

// Close closes the port and raft's connections, not those of a Server. It may be repeated.
func (p *Port) Close() error {
	p.mu.Lock()
	closed := p.closed
	p.closed = true
	p.mu.Unlock()
	if closed {
		return nil
	}
	err := p.listener.Close()
	for _, h := range []*connListener{p.raft, p.rpc, p.join} {
		_ = h.Close()
	}
	p.halfOpen.close()
	p.HangUp(func(Caller) bool { return true })
	return err
}

// HangUp closes raft's connections of some callers. A [Server] has the same for its own.
func (p *Port) HangUp(on func(Caller) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn, caller := range p.rafts {
		if on(caller) {
			abort(conn)
		}
	}
}

// greet identifies a connection and passes it on.
func (p *Port) greet(pending *pending) {
	defer p.halfOpen.leave(pending)
	conn, to, err := p.identify(pending.Conn)
	switch {
	case err != nil && pending.evicted.Load():
		p.report.Crowded(Caller{Role: p.stranger(), Address: addressOf(pending.Conn)})
	case errors.Is(err, errNotOurs):
		p.report.Malformed()
	case err != nil && !errors.Is(err, errNothing):
		p.report.Failed(Caller{Role: p.stranger(), Address: addressOf(pending.Conn)}, err)
	}
	switch {
	case err == nil:
		to.deliver(conn, p.times.handshake)
		return
	case !p.security.isPlain() && !errors.Is(err, errNothing):
		drainClose(pending.Conn) // lets the peer read the alert
	}
	_ = pending.Close()
}

var (
	errNotOurs = errors.New("it began with something else")
	errNothing = errors.New("nothing came") // a check whether the port is open
)

// identify returns a usable connection and its listener.
func (p *Port) identify(conn net.Conn) (net.Conn, *connListener, error) {
	if p.security.isPlain() {
		return p.readBeginning(conn)
	}
	_ = conn.SetDeadline(time.Now().Add(p.times.handshake))
	few := &limitedReader{Conn: conn, remaining: maxHandshake}
	secure := tls.Server(few, p.security.Server)
	if err := secure.Handshake(); err != nil {
		return nil, nil, answerPlain(err)
	}
	few.unlimit()
	_ = conn.SetDeadline(time.Time{})
	state := secure.ConnectionState()
	if state.NegotiatedProtocol == ProtocolJoin {
		return &peekedConn{Conn: secure, caller: Caller{Role: RoleJoiner, Address: addressOf(conn)}}, p.join, nil
	}
	caller, err := p.security.Caller(&state)
	if err != nil {
		return nil, nil, err
	}
	caller.Address = addressOf(conn)
	switch {
	case state.NegotiatedProtocol == ProtocolRPC:
		return &peekedConn{Conn: secure, caller: caller}, p.rpc, nil
	case state.NegotiatedProtocol == ProtocolRaft && caller.Role == RoleServer:
		return p.keep(secure, caller), p.raft, nil
	}
	return nil, nil, fmt.Errorf("%s asks for protocol %q", caller, state.NegotiatedProtocol)
}

// answerPlain refuses a peer without a TLS handshake.
func answerPlain(err error) error {
	header := tls.RecordHeaderError{}
	switch {
	case errors.Is(err, io.EOF):
		return errNothing
	case !errors.As(err, &header) || header.Conn == nil:
		return err
	case string(header.RecordHeader[:]) != Preface[:len(header.RecordHeader)]:
		return errNotOurs
	}
	refuseConnection(socketOf(header.Conn), NeedsTLS)
	return NeedsTLS
}

// tlsHandshake is the first byte of a TLS handshake.
const tlsHandshake = 0x16

// readBeginning is for a port without TLS.
func (p *Port) readBeginning(conn net.Conn) (net.Conn, *connListener, error) {
	caller := Caller{Role: RoleInsecure, Address: addressOf(conn)}
	beginning := make([]byte, len(Preface))
	_ = conn.SetReadDeadline(time.Now().Add(p.times.preface))
	came, err := io.ReadFull(conn, beginning)
	_ = conn.SetReadDeadline(time.Time{})
	switch {
	case came == 0:
		return nil, nil, errNothing
	case err == nil && string(beginning) == RaftPreface:
		return p.keep(conn, caller), p.raft, nil
	case err == nil && string(beginning) == Preface:
		return &peekedConn{Conn: conn, caller: caller, peeked: beginning}, p.rpc, nil
	case beginning[0] == tlsHandshake:
		refuseConnection(conn, NoTLS)
		return nil, nil, NoTLS
	}
	return nil, nil, errNotOurs
}

// keep registers a connection of raft until it is closed.
func (p *Port) keep(conn net.Conn, caller Caller) net.Conn {
	kept := &raftConn{Conn: conn, port: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = conn.Close()
	}
	p.rafts[kept] = caller
	return kept
}

// raftConn is a connection which its port can close.
type raftConn struct {
	net.Conn
	port *Port
}

// NetConn is part of wrapped.
func (c *raftConn) NetConn() net.Conn { return c.Conn }

// Close is part of net.Conn.
func (c *raftConn) Close() error {
	c.port.forget(c)
	return c.Conn.Close()
}

func (p *Port) forget(conn *raftConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.rafts, conn)
}

// turnAway refuses a peer with a TLS alert, if possible without waiting.
func (p *Port) turnAway(conn net.Conn) {
	if !p.security.isPlain() {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Millisecond))
		_, _ = conn.Write(alert)
	}
	_ = conn.Close()
}

// alert is a TLS record with a fatal internal_error, the alert for a lack of resources.
var alert = []byte{21, 3, 3, 0, 2, 2, 80}

// Limits for reading from refused connections.
const (
	maxDraining = 64
	drainTime   = time.Second
	drainBytes  = 64 << 10
)

// refuseConnection sends a refusal for all calls of a connection.
func refuseConnection(conn net.Conn, why Refusal) {
	_ = conn.SetWriteDeadline(time.Now().Add(drainTime))
	if _, err := conn.Write(encodeBare(head{number: ofConnection, kind: byte(why)})); err != nil {
		return
	}
	if half, can := conn.(halfCloser); can {
		_ = half.CloseWrite()
	}
	drainClose(conn)
}

// drainClose reads from the peer for a while: a connection closed with unread data is reset, and the refusal
// would be lost.
func drainClose(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(drainTime))
	buffer := make([]byte, 4<<10)
	for left := drainBytes; left > 0; {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		left -= n
	}
}
