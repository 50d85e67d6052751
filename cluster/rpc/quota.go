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

// burst is how many times its limit an account may hold with answers and what is urgent. Other requests have room up to the
// limit only, so there is always some that answers get sooner or later, the largest too.
const burst = 2

// bucket counts bytes, also in those above it.
type bucket struct {
	parent      *bucket // nil: none
	used, limit int
}

func (b *bucket) fits(bytes, times int) bool {
	for ; b != nil; b = b.parent {
		if b.used+bytes > times*b.limit {
			return false
		}
	}
	return true
}

func (b *bucket) add(bytes int) {
	for ; b != nil; b = b.parent {
		b.used += bytes
	}
}

// peer is whose connections are counted together: a host with a certificate, a user of a socket, else an address.
type peer struct {
	host    string
	address netip.Addr
	uid     uint32
}

func peerOf(c Caller) peer {
	if c.Host != "" {
		return peer{host: c.Host}
	}
	return peer{address: c.Address, uid: c.UID}
}

// peerUsage is an origin that has connections.
type peerUsage struct {
	bucket
	coming      bucket
	connections int
}

// connectionsPool counts connections, which all are of one kind of listener.
func connectionsPool(l limits) *budget.Pool {
	limit := budget.Limit{Budget: l.what, Of: "user or host", Most: uint64(l.connectionsPerHost)}
	all := limit
	all.Of, all.Most = "listener", uint64(l.connections)
	return budget.NewPool(limit, all, uint64(min(l.connectionsReserved, l.connections/8)))
}

// buckets are those of a connection.
type buckets struct {
	calls  *bucket
	coming *bucket // of its host
}

// quota is what is left of a server's limits.
type quota struct {
	limits limits

	mu          sync.Mutex
	freed       sync.Cond // of mu: there is more room, or the server is closed
	closed      bool
	all         bucket
	coming      bucket
	peers       map[peer]*peerUsage
	connections *budget.Pool
}

func newQuota(l limits) *quota {
	r := &quota{limits: l, all: bucket{limit: l.bytes}, coming: bucket{limit: l.coming}, peers: make(map[peer]*peerUsage), connections: connectionsPool(l)}
	r.freed.L = &r.mu
	return r
}

// connect returns the accounts of another connection, and an error if there is no room for one. There is for one in whose place another one
// is leaving.
func (q *quota) connect(caller Caller, standing budget.Standing) (buckets, error) {
	if err := q.connections.Take(caller.User(), 1, standing); err != nil {
		return buckets{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	from := peerOf(caller)
	h := q.peers[from]
	if h == nil {
		h = &peerUsage{
			bucket: bucket{parent: &q.all, limit: q.limits.bytesPerHost},
			coming: bucket{parent: &q.coming, limit: q.limits.comingPerHost},
		}
	}
	q.peers[from] = h
	h.connections++
	return buckets{&bucket{parent: &h.bucket, limit: q.limits.bytesPerConnection}, &h.coming}, nil
}

// disconnect is for a connection none of whose calls is under way any more.
func (q *quota) disconnect(caller Caller, standing budget.Standing) {
	q.connections.Give(caller.User(), 1, standing)
	q.mu.Lock()
	defer q.mu.Unlock()
	from := peerOf(caller)
	h := q.peers[from]
	if h.connections--; h.connections == 0 {
		delete(q.peers, from)
	}
}

// tryAcquire takes room for a request if there is some, which an urgent one has as answers have it.
func (q *quota) tryAcquire(a *bucket, bytes int, urgent bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || !a.fits(bytes, timesFor(urgent)) {
		return false
	}
	a.add(bytes)
	return true
}

func timesFor(urgent bool) int {
	if urgent {
		return burst
	}
	return 1
}

// acquireWait waits until there is room in an account that may hold so many times its limit. It is false, and nothing is taken, if ctx
// has ended or the server was closed meanwhile.
func (q *quota) acquireWait(ctx context.Context, a *bucket, bytes, times int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !a.fits(bytes, times) {
		defer context.AfterFunc(ctx, q.wakeAll)()
	}
	for !a.fits(bytes, times) {
		if q.closed || ctx.Err() != nil {
			return false
		}
		q.freed.Wait()
	}
	a.add(bytes)
	return true
}

// wakeAll is for those who wait for room.
func (q *quota) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.freed.Broadcast()
}

// release takes back what was taken and drawn.
func (q *quota) release(a *bucket, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a.add(-bytes)
	q.freed.Broadcast()
}

// close lets nobody wait any longer.
func (q *quota) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.freed.Broadcast()
}
