package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"lockfs/cluster/rpc"
)

// network connects hosts. What a host sends to another one arrives in order on each connection, after a delay of its own. A link, which
// has one direction, may be cut: what is sent over it waits until it is whole again, as with TCP, or until the sender gives up.
type network struct {
	seed uint64

	mu    sync.Mutex
	hosts map[string]*host // by IP address
	links map[[2]string]*link
	slow  time.Duration // that each message takes in addition, at most
}

// link is one direction between two hosts.
type link struct {
	random *rand.Rand
	cut    bool
	pipes  []*pipe
}

// unacknowledged is for how long a host waits for another one to take what it sent.
const unacknowledged = 4 * time.Second

// keepalive is when a host notices that another one is gone which it says nothing to.
const keepalive = 6 * time.Second

func newNetwork(seed uint64) *network {
	return &network{seed: seed, hosts: make(map[string]*host), links: make(map[[2]string]*link)}
}

// host has an address of its own.
type host struct {
	net     *network
	address string // IP

	// Guarded by the network's mutex.
	up       bool // its programs run; else whoever connects is refused, or, without power, not answered
	power    bool
	frozen   bool          // its programs stand still: what comes is held, and what they send as well
	thaw     chan struct{} // nil: nobody waits for that
	listener *listener
	ends     []*end
	ports    int
}

var _ rpc.Network = (*host)(nil)

func (n *network) addHost(address string) *host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := &host{net: n, address: address, up: true, power: true}
	n.hosts[address] = h
	return h
}

func (n *network) link(from, to string) *link {
	key := [2]string{from, to}
	l := n.links[key]
	if l == nil {
		hash := fnv.New64a()
		_, _ = io.WriteString(hash, from+">"+to)
		l = &link{random: rand.New(rand.NewPCG(n.seed, hash.Sum64()))}
		n.links[key] = l
	}
	return l
}

// passes tells whether messages from one host get to another one now.
func (n *network) passes(from, to string) bool {
	return !n.link(from, to).cut && !n.hosts[from].frozen && !n.hosts[to].frozen
}

// delay is that of the next message.
func (n *network) delay(from, to string) time.Duration {
	if from == to {
		return 10 * time.Microsecond
	}
	random := n.link(from, to).random
	d := 100*time.Microsecond + time.Duration(random.Int64N(int64(time.Millisecond)))
	if random.IntN(200) == 0 {
		d += time.Duration(random.Int64N(int64(200 * time.Millisecond)))
	}
	if n.slow > 0 {
		d += time.Duration(random.Int64N(int64(n.slow)))
	}
	return d
}

// change changes the network, and has go on what can.
func (n *network) change(do func()) {
	n.mu.Lock()
	do()
	var waiting []*pipe
	for _, key := range slices.SortedFunc(maps.Keys(n.links), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		l := n.links[key]
		waiting = append(waiting, l.pipes...)
	}
	n.mu.Unlock()
	for _, p := range waiting {
		p.arrive()
	}
}

func (n *network) setCut(from, to string, cut bool) {
	n.change(func() { n.link(from, to).cut = cut })
}

// stop ends all programs of a host; without power nobody is told.
func (h *host) stop(power bool) {
	h.net.mu.Lock()
	h.up, h.power, h.frozen, h.listener = false, power, false, nil
	if h.thaw != nil {
		close(h.thaw)
		h.thaw = nil
	}
	ends := h.ends
	h.ends = nil
	h.net.mu.Unlock()
	for _, e := range ends {
		e.die(power)
	}
}

func (h *host) start() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.up, h.power = true, true
}

// freeze has the programs of a host stand still, or go on.
func (h *host) freeze(frozen bool) {
	h.net.change(func() {
		h.frozen = frozen
		if !frozen && h.thaw != nil {
			close(h.thaw)
			h.thaw = nil
		}
	})
}

// thawed answers nil unless the host stands still, or what is closed when it goes on.
func (h *host) thawed() <-chan struct{} {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if !h.frozen {
		return nil
	}
	if h.thaw == nil {
		h.thaw = make(chan struct{})
	}
	return h.thaw
}

// reset breaks all connections of a host.
func (h *host) reset() {
	h.net.mu.Lock()
	ends := slices.Clone(h.ends)
	h.net.mu.Unlock()
	for _, e := range ends {
		e.fail(syscall.ECONNRESET)
		e.other.fail(syscall.ECONNRESET)
	}
}

// listener is part of rpc.Network.
type listener struct {
	address string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// Listen is part of rpc.Network.
func (h *host) Listen(address string) (net.Listener, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.listener = &listener{address: address, conns: make(chan net.Conn, 1024), closed: make(chan struct{})}
	return h.listener, nil
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return place(l.address) }

type place string

func (place) Network() string  { return "tcp" }
func (p place) String() string { return string(p) }

// Dial is part of rpc.Network.
func (h *host) Dial(ctx context.Context, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	there := to.Addr().String()
	for {
		h.net.mu.Lock()
		target := h.net.hosts[there]
		if !h.up {
			h.net.mu.Unlock()
			return nil, syscall.ENETDOWN
		}
		away := target == nil || !target.power || h.net.link(h.address, there).cut || h.net.link(there, h.address).cut
		wait := h.net.delay(h.address, there) + h.net.delay(there, h.address)
		h.net.mu.Unlock()
		if away {
			wait = 200 * time.Millisecond
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		}
		if !away {
			return h.connect(target, address)
		}
	}
}

func (h *host) connect(target *host, address string) (net.Conn, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	l := target.listener
	if !h.up || !target.up || l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	h.ports++
	mine, theirs := &end{host: h, at: fmt.Sprintf("%s:%d", h.address, 20000+h.ports)}, &end{host: target, at: address}
	mine.other, theirs.other = theirs, mine
	mine.in, theirs.in = newPipe(theirs, mine), newPipe(mine, theirs)
	for _, e := range []*end{mine, theirs} {
		e.host.ends = append(e.host.ends, e)
		l := h.net.link(e.other.host.address, e.host.address)
		l.pipes = append(l.pipes, e.in)
	}
	select {
	case l.conns <- theirs:
	default:
		return nil, syscall.ECONNREFUSED
	}
	return mine, nil
}

// end is one end of a connection.
type end struct {
	host  *host
	at    string
	other *end
	in    *pipe // what comes
}

// pipe is what is sent to an end.
type pipe struct {
	from, to *end

	mu       sync.Mutex
	changed  chan struct{} // closed at each change; nil: nobody waits
	coming   []message
	last     time.Time // when the last of these is there at the earliest
	content  []byte    // that has arrived
	err      error     // what comes then; nil: more
	closed   bool      // by its reader
	deadline time.Time
}

type message struct {
	sent, at time.Time
	data     []byte
	err      error // the end
}

func newPipe(from, to *end) *pipe { return &pipe{from: from, to: to} }

func (p *pipe) wake() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// send sends data, or the end.
func (p *pipe) send(m message) {
	n := p.from.host.net
	n.mu.Lock()
	delay := n.delay(p.from.host.address, p.to.host.address)
	n.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	m.sent = time.Now()
	if m.at = m.sent.Add(delay); m.at.Before(p.last) {
		m.at = p.last
	}
	p.last = m.at
	p.coming = append(p.coming, m)
	time.AfterFunc(time.Until(m.at), p.arrive)
}

// arrive has arrive what is due, if it can.
func (p *pipe) arrive() {
	n := p.from.host.net
	n.mu.Lock()
	passes := n.passes(p.from.host.address, p.to.host.address)
	frozen := p.from.host.frozen || p.to.host.frozen
	n.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for passes && len(p.coming) > 0 && !p.coming[0].at.After(now) {
		m := p.coming[0]
		p.coming = p.coming[1:]
		if p.err != nil {
			continue
		}
		p.content = append(p.content, m.data...)
		p.err = m.err
		p.wake()
	}
	if len(p.coming) == 0 || p.coming[0].at.After(now) {
		return
	}
	// It waits for the link. The sender gives up in the end, unless the other host does take it.
	if wait := p.coming[0].sent.Add(unacknowledged).Sub(now); wait <= 0 && !frozen {
		p.coming = nil
		go p.from.fail(syscall.ETIMEDOUT)
	} else {
		time.AfterFunc(max(wait, 100*time.Millisecond), p.arrive)
	}
}

// fail ends a connection at one end.
func (e *end) fail(err error) {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.in.content, e.in.coming = nil, nil
	if e.in.err == nil {
		e.in.err = err
	}
	e.in.wake()
}

// die is for an end whose host has stopped.
func (e *end) die(power bool) {
	e.fail(net.ErrClosed)
	e.forget()
	if power {
		e.other.in.send(message{err: syscall.ECONNRESET})
		return
	}
	time.AfterFunc(keepalive, func() { e.other.fail(syscall.ETIMEDOUT) })
}

func (e *end) forget() {
	n := e.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	e.host.ends = slices.DeleteFunc(e.host.ends, func(other *end) bool { return other == e })
	l := n.link(e.other.host.address, e.host.address)
	l.pipes = slices.DeleteFunc(l.pipes, func(p *pipe) bool { return p == e.in })
}

// Read is part of net.Conn.
func (e *end) Read(b []byte) (int, error) {
	p := e.in
	for {
		p.mu.Lock()
		switch {
		case p.closed:
			p.mu.Unlock()
			return 0, net.ErrClosed
		case !p.deadline.IsZero() && !time.Now().Before(p.deadline):
			p.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(p.content) > 0:
			n := copy(b, p.content)
			p.content = p.content[n:]
			p.mu.Unlock()
			return n, nil
		case p.err != nil:
			defer p.mu.Unlock()
			return 0, p.err
		}
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed, deadline := p.changed, p.deadline
		p.mu.Unlock()
		if deadline.IsZero() {
			<-changed
			continue
		}
		timer := time.NewTimer(time.Until(deadline))
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Write is part of net.Conn. It never waits.
func (e *end) Write(b []byte) (int, error) {
	e.in.mu.Lock()
	err := e.in.err
	if e.in.closed {
		err = net.ErrClosed
	}
	e.in.mu.Unlock()
	if err != nil && err != io.EOF {
		return 0, err
	}
	n := e.host.net
	n.mu.Lock()
	there := slices.Contains(e.other.host.ends, e.other)
	up := e.other.host.up
	n.mu.Unlock()
	switch {
	case !there && up:
		time.AfterFunc(time.Millisecond, func() { e.fail(syscall.ECONNRESET) })
	case !there:
		time.AfterFunc(unacknowledged, func() { e.fail(syscall.ETIMEDOUT) })
	default:
		e.other.in.send(message{data: append([]byte(nil), b...)})
	}
	return len(b), nil
}

// Close is part of net.Conn.
func (e *end) Close() error {
	e.in.mu.Lock()
	closed := e.in.closed
	e.in.closed = true
	e.in.content, e.in.coming = nil, nil
	e.in.wake()
	e.in.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	e.forget()
	e.other.in.send(message{err: io.EOF})
	return nil
}

// CloseWrite says that nothing more will be sent.
func (e *end) CloseWrite() error {
	e.other.in.send(message{err: io.EOF})
	return nil
}

// LocalAddr is part of net.Conn.
func (e *end) LocalAddr() net.Addr { return place(e.at) }

// RemoteAddr is part of net.Conn.
func (e *end) RemoteAddr() net.Addr { return place(e.other.at) }

// SetDeadline is part of net.Conn.
func (e *end) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

// SetReadDeadline is part of net.Conn.
func (e *end) SetReadDeadline(t time.Time) error {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.in.deadline = t
	e.in.wake()
	return nil
}

// SetWriteDeadline is part of net.Conn. Nothing waits.
func (e *end) SetWriteDeadline(time.Time) error { return nil }
