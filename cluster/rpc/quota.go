package rpc

import (
	"context"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/budget"
)

// limits are the limits of a server. Each of them fits the largest call.
type limits struct {
	what    string // the connections, in messages and metrics
	request int    // bytes of one

	connections         int // in all
	connectionsPerHost  int
	connectionsReserved int // of these, for root of this host

	coming        int // bytes of incomplete requests, in all
	comingPerHost int

	bytes              int // bytes of calls, in all
	bytesPerHost       int
	bytesPerConnection int
}

// standardLimits allow 10,000 mounts with two connections each, hundreds of containers behind one address,
// and 4096 calls on a connection. Only many hosts with incomplete requests can delay the requests of others.
var standardLimits = limits{
	what:        "connections to the port",
	request:     MaxRequest,
	connections: 32 << 10, connectionsPerHost: 2 << 10,
	coming: 64 << 20, comingPerHost: 4 << 20,
	bytes: 128 << 20, bytesPerHost: 64 << 20, bytesPerConnection: 16 << 20,
}

// socketLimits allow a hundred commands of each user at once, and those of root besides.
var socketLimits = limits{
	what:        "connections to the socket for commands",
	request:     MaxRequest,
	connections: 1 << 10, connectionsPerHost: 128, connectionsReserved: 128,
	coming: 8 << 20, comingPerHost: 1 << 20,
	bytes: 96 << 20, bytesPerHost: 12 << 20, bytesPerConnection: 12 << 20,
}

// joinLimits are for unknown callers. To fill all connections takes as many handshakes in each joinSettled,
// which costs the server's time anyway.
var joinLimits = limits{
	what:        "connections of joining hosts",
	request:     16 << 10,
	connections: 512, connectionsPerHost: 16,
	coming: 1 << 20, comingPerHost: 128 << 10,
	bytes: 8 << 20, bytesPerHost: 1 << 20, bytesPerConnection: 128 << 10,
}

// callCost is the overhead of a call: a goroutine and its memory. A kept call needs it for the time of its
// reply.
const callCost = 4 << 10

// burst is the factor by which replies and urgent requests may exceed a limit. Other requests stay below the
// limit, so even the largest reply gets room sooner or later.
const burst = 2

// bucket counts bytes, also in its parents.
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

// peer groups connections: by the host of a certificate, the user of a socket, or else the address.
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

// peerUsage is the usage of a peer.
type peerUsage struct {
	bucket
	coming      bucket
	connections int
}

// connectionsPool counts the connections of one kind of listener.
func connectionsPool(l limits) *budget.Pool {
	limit := budget.Limit{Budget: l.what, Of: "user or host", Most: uint64(l.connectionsPerHost)}
	all := limit
	all.Of, all.Most = "listener", uint64(l.connections)
	return budget.NewPool(limit, all, uint64(min(l.connectionsReserved, l.connections/8)))
}

// buckets are the buckets of a connection.
type buckets struct {
	calls  *bucket
	coming *bucket // of its host
}

// quota tracks the usage of a server's limits.
type quota struct {
	limits limits

	mu          sync.Mutex
	freed       sync.Cond // of mu: signals released quota, and the close
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

// connect returns the buckets of a new connection, or an error if there are too many. A replacement always
// fits.
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

// disconnect is called after the last call of a connection.
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

// tryAcquire acquires quota for a request if available; an urgent one may exceed the limits.
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

// acquireWait waits until a bucket fits within so many times its limit. It returns false, without quota,
// after the end of ctx or the close of the server.
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

// wakeAll wakes all waiters.
func (q *quota) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.freed.Broadcast()
}

// release returns acquired quota.
func (q *quota) release(a *bucket, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a.add(-bytes)
	q.freed.Broadcast()
}

// close ends all waits.
func (q *quota) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.freed.Broadcast()
}

// filesReserve is the number of files kept for the log, snapshots and mount.
const filesReserve = 256

// Shares of the remaining files, in sixteenths, for each kind of connection. (Go raises the soft limit to the
// hard limit at the start.)
const (
	filesOfCalls    = 12
	filesOfHalfOpen = 2
	filesOfJoiners  = 1
	filesOfSockets  = 1
)

// withinFiles limits connections to a share of the files, but not below one.
func withinFiles(l limits, share int) limits {
	l.connections = max(min(l.connections, filesFor(share)), 1)
	return l
}

// filesFor returns the number of files in so many sixteenths.
func filesFor(share int) int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	reserve := min(filesReserve, int(limit.Cur)/2)
	return (int(limit.Cur) - reserve) * share / 16
}
