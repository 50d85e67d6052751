package rpc

import (
	"container/list"
	"errors"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// graceTime is how long a handshake may take in any case.
const graceTime = 250 * time.Millisecond

// halfOpen counts connections before their handshake is complete. If there are too many, the oldest one after
// its grace time is evicted. If all are younger, the new connection is refused.
type halfOpen struct {
	max, maxPerAddress int
	grace              time.Duration

	mu        sync.Mutex
	all       *list.List // of *pending, oldest first
	addresses map[netip.Addr]*list.List
}

// pending is a half-open connection.
type pending struct {
	net.Conn
	since   time.Time
	address netip.Addr
	evicted atomic.Bool

	inAll, inAddress *list.Element
}

// standardHalfOpen lets hundreds of containers behind one address connect at once.
func standardHalfOpen() *halfOpen {
	return newHalfOpen(min(2<<10, max(filesFor(filesOfHalfOpen), 1)), 256, graceTime)
}

func newHalfOpen(most, mostPerAddress int, grace time.Duration) *halfOpen {
	return &halfOpen{
		max: most, maxPerAddress: mostPerAddress, grace: grace, all: list.New(), addresses: make(map[netip.Addr]*list.List),
	}
}

// enter returns nil if there is no room.
func (h *halfOpen) enter(conn net.Conn) *pending {
	p := &pending{Conn: conn, since: time.Now(), address: addressOf(conn)}
	h.mu.Lock()
	defer h.mu.Unlock()
	same := h.addresses[p.address]
	if same == nil {
		same = list.New()
	}
	if same.Len() >= h.maxPerAddress && !h.evict(same.Front()) || h.all.Len() >= h.max && !h.evict(h.all.Front()) {
		return nil
	}
	h.addresses[p.address] = same
	p.inAll, p.inAddress = h.all.PushBack(p), same.PushBack(p)
	return p
}

// evict closes a connection after its grace time.
func (h *halfOpen) evict(element *list.Element) bool {
	p := element.Value.(*pending)
	if time.Since(p.since) < h.grace {
		return false
	}
	p.evicted.Store(true)
	_ = p.Close()
	h.remove(p)
	return true
}

// leave removes a complete or closed connection.
func (h *halfOpen) leave(p *pending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(p)
}

// remove may be repeated.
func (h *halfOpen) remove(p *pending) {
	if p.inAll == nil {
		return
	}
	h.all.Remove(p.inAll)
	same := h.addresses[p.address]
	if same.Remove(p.inAddress); same.Len() == 0 {
		delete(h.addresses, p.address)
	}
	p.inAll, p.inAddress = nil, nil
}

// close closes all connections.
func (h *halfOpen) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for element := h.all.Front(); element != nil; element = element.Next() {
		_ = element.Value.(*pending).Close()
	}
}

// maxHandshake limits the bytes of a handshake. TLS would keep 256 KiB of certificates for each; ours have
// less than 1 KiB, and rarely more than three.
const maxHandshake = 32 << 10

var errHandshakeSize = errors.New("it sends too much before its handshake ends")

// limitedReader reads a limited number of bytes.
type limitedReader struct {
	net.Conn
	remaining int
}

// NetConn is part of wrapped.
func (c *limitedReader) NetConn() net.Conn { return c.Conn }

// Read is part of net.Conn.
func (c *limitedReader) Read(b []byte) (int, error) {
	if c.remaining <= 0 {
		return 0, errHandshakeSize
	}
	n, err := c.Conn.Read(b[:min(len(b), c.remaining)])
	if c.remaining != math.MaxInt {
		c.remaining -= n
	}
	return n, err
}

// unlimit lifts the limit, without a concurrent reader.
func (c *limitedReader) unlimit() { c.remaining = math.MaxInt }
