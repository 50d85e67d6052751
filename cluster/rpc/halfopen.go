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

// graceTime is how long a handshake may take however many others there are.
const graceTime = 250 * time.Millisecond

// halfOpen counts the connections of which it is not known yet what they are for. Where there are too many, the one goes that has
// taken the longest; not so soon, however, that nobody would come to an end: then the newcomer goes.
type halfOpen struct {
	max, maxPerAddress int
	grace              time.Duration

	mu        sync.Mutex
	all       *list.List // of *pending, the oldest first
	addresses map[netip.Addr]*list.List
}

// pending is one of them.
type pending struct {
	net.Conn
	since   time.Time
	address netip.Addr
	evicted atomic.Bool

	inAll, inAddress *list.Element
}

// standardHalfOpen lets hundreds of containers that share an address come at once.
func standardHalfOpen() *halfOpen {
	return newHalfOpen(min(2<<10, max(filesFor(filesOfHalfOpen), 1)), 256, graceTime)
}

func newHalfOpen(most, mostPerAddress int, grace time.Duration) *halfOpen {
	return &halfOpen{
		max: most, maxPerAddress: mostPerAddress, grace: grace, all: list.New(), addresses: make(map[netip.Addr]*list.List),
	}
}

// enter answers nil if there is no room.
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

// evict hangs up on one that has had its time.
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

// leave is for one of which it is known, or that has ended.
func (h *halfOpen) leave(p *pending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(p)
}

// remove does nothing to one that has been removed.
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

// close hangs up on all.
func (h *halfOpen) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for element := h.all.Front(); element != nil; element = element.Next() {
		_ = element.Value.(*pending).Close()
	}
}

// maxHandshake is how many bytes somebody may send until it is known who he is. TLS would keep 256 KiB of certificates, for each; ours are
// below 1 KiB, and hardly ever more than three.
const maxHandshake = 32 << 10

var errHandshakeSize = errors.New("it sends too much before it is known who it is")

// limitedReader is a connection of which only so much is read.
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

// unlimit lifts the limit. Nobody may read meanwhile.
func (c *limitedReader) unlimit() { c.remaining = math.MaxInt }
