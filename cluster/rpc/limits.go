package rpc

import (
	"context"
	"net/netip"
	"sync"
)

// limits are what a server has room for. The room of each kind has to be enough for the largest call.
type limits struct {
	connections        int // in all
	connectionsPerHost int // from one address

	bytes              int // of calls, in all
	bytesPerHost       int
	bytesPerConnection int
}

// standardLimits let each of 10,000 mounts have its two connections, hundreds of containers share an address, and 4096 calls of one
// connection be under way.
var standardLimits = limits{
	connections: 32 << 10, connectionsPerHost: 2 << 10,
	bytes: 128 << 20, bytesPerHost: 64 << 20, bytesPerConnection: 16 << 20,
}

// callCost is counted for each call besides its messages: a goroutine and what it needs.
const callCost = 4 << 10

// overdraft is how many times its limit an account may hold with answers and what is urgent. Other requests have room up to the
// limit only, so there is always some that answers get sooner or later, the largest too.
const overdraft = 2

// account counts bytes, also in those above it.
type account struct {
	above       *account // nil: none
	used, limit int
}

func (a *account) fits(bytes, times int) bool {
	for ; a != nil; a = a.above {
		if a.used+bytes > times*a.limit {
			return false
		}
	}
	return true
}

func (a *account) add(bytes int) {
	for ; a != nil; a = a.above {
		a.used += bytes
	}
}

// host is an address that has connections.
type host struct {
	account
	connections int
}

// room is what is left of a server's limits.
type room struct {
	limits limits

	mu          sync.Mutex
	freed       sync.Cond // of mu: there is more room, or the server is closed
	closed      bool
	all         account
	connections int
	hosts       map[netip.Addr]*host
}

func newRoom(l limits) *room {
	r := &room{limits: l, all: account{limit: l.bytes}, hosts: make(map[netip.Addr]*host)}
	r.freed.L = &r.mu
	return r
}

// enter answers the account of another connection from an address, and nil if there is no room for one.
func (r *room) enter(from netip.Addr) *account {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hosts[from]
	if h == nil {
		h = &host{account: account{above: &r.all, limit: r.limits.bytesPerHost}}
	}
	if r.connections >= r.limits.connections || h.connections >= r.limits.connectionsPerHost {
		return nil
	}
	r.hosts[from] = h
	r.connections++
	h.connections++
	return &account{above: &h.account, limit: r.limits.bytesPerConnection}
}

// leave is for a connection none of whose calls is under way any more.
func (r *room) leave(from netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connections--
	h := r.hosts[from]
	if h.connections--; h.connections == 0 {
		delete(r.hosts, from)
	}
}

// take waits until there is room for a request, which an urgent one has as answers have it. It is false if the server was closed
// meanwhile.
func (r *room) take(a *account, bytes int, urgent bool) bool {
	times := 1
	if urgent {
		times = overdraft
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for !a.fits(bytes, times) && !r.closed {
		r.freed.Wait()
	}
	a.add(bytes)
	return !r.closed
}

// draw waits until there is room for an answer. It is false, and nothing is taken, if ctx has ended or the server was closed
// meanwhile.
func (r *room) draw(ctx context.Context, a *account, bytes int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !a.fits(bytes, overdraft) {
		defer context.AfterFunc(ctx, r.lookAgain)()
	}
	for !a.fits(bytes, overdraft) {
		if r.closed || ctx.Err() != nil {
			return false
		}
		r.freed.Wait()
	}
	a.add(bytes)
	return true
}

// lookAgain is for those who wait for room.
func (r *room) lookAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.freed.Broadcast()
}

// give takes back what was taken and drawn.
func (r *room) give(a *account, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a.add(-bytes)
	r.freed.Broadcast()
}

// close lets nobody wait any longer.
func (r *room) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.freed.Broadcast()
}
