package rpc

import (
	"context"
	"net/netip"
	"sync"

	"lockfs/raftstore/budget"
)

// limits are what a server has room for. The room of each kind has to be enough for the largest call.
type limits struct {
	what    string // the connections, in messages and metrics
	request int    // bytes of one

	connections         int // in all
	connectionsPerHost  int
	connectionsReserved int // of all, for root of this host

	coming        int // bytes of requests of which only a part has come, in all
	comingPerHost int

	bytes              int // of calls, in all
	bytesPerHost       int
	bytesPerConnection int
}

// standardLimits let each of 10,000 mounts have its two connections, hundreds of containers share an address, and 4096 calls of one
// connection be under way. Many hosts have to begin requests and not end them before others wait for theirs to come.
var standardLimits = limits{
	what:        "connections to the port",
	request:     MaxRequest,
	connections: 32 << 10, connectionsPerHost: 2 << 10,
	coming: 64 << 20, comingPerHost: 4 << 20,
	bytes: 128 << 20, bytesPerHost: 64 << 20, bytesPerConnection: 16 << 20,
}

// socketLimits let a hundred commands of each user be under way, and those of root besides.
var socketLimits = limits{
	what:        "connections to the socket for commands",
	request:     MaxRequest,
	connections: 1 << 10, connectionsPerHost: 128, connectionsReserved: 128,
	coming: 8 << 20, comingPerHost: 1 << 20,
	bytes: 96 << 20, bytesPerHost: 12 << 20, bytesPerConnection: 12 << 20,
}

// joinLimits are for who may be anybody. To take all connections somebody has to do as many handshakes in each joinSettled, which takes
// the server's time anyway.
var joinLimits = limits{
	what:        "connections of joining hosts",
	request:     16 << 10,
	connections: 512, connectionsPerHost: 16,
	coming: 1 << 20, comingPerHost: 128 << 10,
	bytes: 8 << 20, bytesPerHost: 1 << 20, bytesPerConnection: 128 << 10,
}

// callCost is counted for each call besides its messages: a goroutine and what it needs. One that is kept has that while it is answered.
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

// origin is whose connections are counted together: a host with a certificate, a user of a socket, else an address.
type origin struct {
	host    string
	address netip.Addr
	uid     uint32
}

func originOf(c Caller) origin {
	if c.Host != "" {
		return origin{host: c.Host}
	}
	return origin{address: c.Address, uid: c.UID}
}

// host is an origin that has connections.
type host struct {
	account
	coming      account
	connections int
}

// connectionsPool counts connections, which all are of one kind of listener.
func connectionsPool(l limits) *budget.Pool {
	limit := budget.Limit{Budget: l.what, Of: "user or host", Most: uint64(l.connectionsPerHost)}
	all := limit
	all.Of, all.Most = "listener", uint64(l.connections)
	return budget.NewPool(limit, all, uint64(min(l.connectionsReserved, l.connections/8)))
}

// accounts are those of a connection.
type accounts struct {
	calls  *account
	coming *account // of its host
}

// room is what is left of a server's limits.
type room struct {
	limits limits

	mu          sync.Mutex
	freed       sync.Cond // of mu: there is more room, or the server is closed
	closed      bool
	all         account
	coming      account
	hosts       map[origin]*host
	connections *budget.Pool
}

func newRoom(l limits) *room {
	r := &room{limits: l, all: account{limit: l.bytes}, coming: account{limit: l.coming}, hosts: make(map[origin]*host), connections: connectionsPool(l)}
	r.freed.L = &r.mu
	return r
}

// enter returns the accounts of another connection, and an error if there is no room for one. There is for one in whose place another one
// is leaving.
func (r *room) enter(caller Caller, standing budget.Standing) (accounts, error) {
	if err := r.connections.Take(caller.User(), 1, standing); err != nil {
		return accounts{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	from := originOf(caller)
	h := r.hosts[from]
	if h == nil {
		h = &host{
			account: account{above: &r.all, limit: r.limits.bytesPerHost},
			coming:  account{above: &r.coming, limit: r.limits.comingPerHost},
		}
	}
	r.hosts[from] = h
	h.connections++
	return accounts{&account{above: &h.account, limit: r.limits.bytesPerConnection}, &h.coming}, nil
}

// leave is for a connection none of whose calls is under way any more.
func (r *room) leave(caller Caller, standing budget.Standing) {
	r.connections.Give(caller.User(), 1, standing)
	r.mu.Lock()
	defer r.mu.Unlock()
	from := originOf(caller)
	h := r.hosts[from]
	if h.connections--; h.connections == 0 {
		delete(r.hosts, from)
	}
}

// take takes room for a request if there is some, which an urgent one has as answers have it.
func (r *room) take(a *account, bytes int, urgent bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || !a.fits(bytes, timesFor(urgent)) {
		return false
	}
	a.add(bytes)
	return true
}

func timesFor(urgent bool) int {
	if urgent {
		return overdraft
	}
	return 1
}

// draw waits until there is room in an account that may hold so many times its limit. It is false, and nothing is taken, if ctx
// has ended or the server was closed meanwhile.
func (r *room) draw(ctx context.Context, a *account, bytes, times int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !a.fits(bytes, times) {
		defer context.AfterFunc(ctx, r.lookAgain)()
	}
	for !a.fits(bytes, times) {
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
