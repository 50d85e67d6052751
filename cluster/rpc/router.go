package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/formats/pause"
)

// AttemptTimeout is how long one node may take to answer before another is asked.
const AttemptTimeout = 2 * time.Second

// How long to wait before asking again where asking at once did not help.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// maxRedirects are followed without a pause: nodes can for a while name each other as the leader.
const maxRedirects = 2

// Router finds the leader and follows it. While it cannot reach the leader, it has another server forward its calls, and now and then
// tries the direct way again.
type Router struct {
	mu       sync.Mutex
	peers    *Peers
	roam     bool   // entry follows the membership
	entry    []Node // whom to ask for the leader, by turns
	leader   Node   // nil: not known
	turn     int
	attempts map[*attempt]struct{} // under way
	members  []Node                // the present members, as far as the router was told of them
	named    []Node                // that were named as the leader, the newest last
	detours  *detours
}

// attempt is one node's chance to answer.
type attempt struct {
	node        Node
	unreachable Node // the leader to which node is to forward; nil: node is to do it itself
	began       time.Time
	limit       time.Duration
	end         context.CancelFunc
	moved       bool // given up for a new leader
}

// NewRouter asks the entries for the leader, by turns, and finds it among the peers.
func NewRouter(peers *Peers, entry ...Node) *Router {
	r := &Router{peers: peers, entry: entry, attempts: make(map[*attempt]struct{})}
	r.detours = newDetours(&r.mu, func(string, string) {})
	return r
}

// ReportDetours has the router tell of each server, via, that is to forward to a leader from now on, by their addresses; no via: the leader
// can be reached again. It is to be called before the router is used, and report must not wait.
func (r *Router) ReportDetours(report func(leader, via string)) { r.detours.report = report }

// NewRoamingRouter has the present members as its entries, as soon as it is told of them.
func NewRoamingRouter(peers *Peers, entry ...Node) *Router {
	r := NewRouter(peers, entry...)
	r.roam = true
	return r
}

var errNoLeader = errors.New("no leader is known")

// Ask asks until a node has done it or refuses to, or ctx ends; its error then wraps ctx's and tells the last reason. A refusal says
// nothing of what became of earlier attempts. The method is mostly one of Node's: Ask(ctx, r, Node.Execute, request).
func Ask[Request any, Reply Answer](
	ctx context.Context, r *Router, method func(Node, context.Context, Request) (Reply, error), request Request,
) (Reply, error) {
	wait := firstPause
	var before, unproven error // of the attempt before, and of the last one with an unproven server
	for redirects := 0; ; {
		asking, attempt := r.begin(ctx)
		node := attempt.node
		reply, err := method(node, asking, request)
		moved := r.end(attempt)
		redirected := false
		if err == nil {
			r.answered(attempt, reply)
			if reply.GetOutcome() == clusterpb.Outcome_DONE {
				return reply, nil
			}
			redirected, err = r.learn(attempt, reply)
		} else {
			if isFinal(err) {
				r.forget(node)
				return reply, err
			}
			r.failed(attempt, err)
		}
		if ctx.Err() != nil {
			switch {
			case unproven != nil: // it names the next step; other servers may only be unreachable
				err = unproven
			case before != nil && errors.Is(err, ctx.Err()): // the attempt had no time to say more
				err = before
			}
			return reply, fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		}
		if before = err; errors.Is(err, ErrUnproven) {
			unproven = err
		}
		if moved {
			continue
		}
		if redirected && redirects < maxRedirects {
			redirects++
			continue
		}
		redirects = 0
		if ended := pause.For(ctx, wait); ended != nil {
			return reply, fmt.Errorf("%w (last: %w)", ended, err)
		}
		wait = min(2*wait, longestPause)
	}
}

// begin gives a node its time.
func (r *Router) begin(ctx context.Context) (context.Context, *attempt) {
	a := &attempt{began: time.Now(), limit: attemptTime(ctx)}
	ctx, a.end = context.WithTimeout(ctx, a.limit)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leader == nil {
		r.leader = r.nextEntry()
	}
	a.node = r.leader
	if via := r.detours.to(r.leader, r.servers); via != nil {
		a.node, a.unreachable = via, r.leader
		ctx = withDetour(ctx, &clusterpb.Detour{Unreachable: serverAddress(r.leader), Cluster: r.cluster()})
	}
	r.attempts[a] = struct{}{}
	return ctx, a
}

// A Guide is a node of this process that knows the addresses of the other servers. Those may have become servers of another cluster, which are
// to do nothing.
type Guide interface {
	Node
	Servers() []string
	ClusterID() string
}

// guide returns nil if there is none.
func (r *Router) guide() Guide {
	for _, near := range r.entry {
		if guide, is := near.(Guide); is {
			return guide
		}
	}
	return nil
}

// cluster is the id of the cluster that is to do what goes by a detour; empty: any.
func (r *Router) cluster() string {
	if guide := r.guide(); guide != nil {
		return guide.ClusterID()
	}
	return ""
}

// servers are all that the router knows besides a node of this process.
func (r *Router) servers() (all []Node) {
	add := func(nodes []Node) {
		for _, node := range nodes {
			if _, is := node.(*Client); is && !slices.Contains(all, node) {
				all = append(all, node)
			}
		}
	}
	add(r.entry)
	if guide := r.guide(); guide != nil {
		add(r.peers.Nodes(guide.Servers()))
		return all
	}
	add(r.members)
	add(r.named)
	return all
}

// maxNamed is how many servers are remembered that were named as the leader.
const maxNamed = 8

// noteNamed notes a server that was named as the leader.
func (r *Router) noteNamed(leader Node) {
	if !slices.Contains(r.named, leader) {
		r.named = append(r.named, leader)
		r.named = r.named[max(0, len(r.named)-maxNamed):]
	}
}

// nextEntry returns the next node to ask for the leader, if possible one that can be reached.
func (r *Router) nextEntry() Node {
	first := r.entry[r.turn%len(r.entry)]
	for range r.entry {
		node := r.entry[r.turn%len(r.entry)]
		if r.turn++; !r.detours.isOut(node) {
			return node
		}
	}
	r.turn++ // all are out: each has its turn
	return first
}

// end tells whether the attempt was given up.
func (r *Router) end(a *attempt) (moved bool) {
	a.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, a)
	return a.moved
}

// SetLeader takes up a leader that the node of this process has found, which is the only entry; no address: that is itself. Attempts at other
// nodes are given up for it: they may be at one that is stopped or cut off, and never answer. As after any attempt, what became of them
// is unknown, and is asked again.
func (r *Router) SetLeader(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	leader := r.entry[0]
	if address != "" {
		leader = r.peers.Node(address)
	}
	r.leader = leader
	r.detours.reached(leader) // by the node of this process
	for a := range r.attempts {
		if a.node != leader && a.node != r.entry[0] {
			a.moved = true
			a.end()
		}
	}
}

// AnyNode answers a node for what any of them can answer: that of this process if there is one, else the one
// that is asked for everything.
func (r *Router) AnyNode() Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.roam || r.leader == nil {
		for i := range r.entry {
			if node := r.entry[(r.turn+i)%len(r.entry)]; !r.detours.isOut(node) {
				return node
			}
		}
		return r.entry[r.turn%len(r.entry)]
	}
	if via := r.detours.to(r.leader, r.servers); via != nil {
		return via
	}
	return r.leader
}

// Entries answers all whom it may ask for the leader.
func (r *Router) Entries() []Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entry
}

// forget makes the next attempt begin at an entry, unless somebody found the leader meanwhile.
func (r *Router) forget(node Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leader == node {
		r.leader = nil
	}
}

// learn takes the leader's address from the answer of a node that did not do it. redirected says that
// somebody better to ask is known.
func (r *Router) learn(a *attempt, reply Answer) (redirected bool, err error) {
	node := a.node
	if reply.GetOutcome() != clusterpb.Outcome_NOT_LEADER {
		return false, fmt.Errorf("the leader answered %v", reply.GetOutcome())
	}
	if reply.GetLeaderAddress() == "" {
		r.forget(node)
		if a.unreachable != nil {
			r.forget(a.unreachable)
		}
		return false, errNoLeader
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	leader := r.peers.Node(reply.GetLeaderAddress())
	if a.unreachable != nil {
		r.detours.leave(node)
	}
	if leader == a.unreachable { // the server does not forward
		return false, NotForwarded
	}
	r.noteNamed(leader)
	r.leader = leader
	return true, fmt.Errorf("the leader is at %s", reply.GetLeaderAddress())
}

// SetMembers takes up the present members: as those that may forward, and as those to ask for the leader if the router roams.
func (r *Router) SetMembers(servers []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(servers) == 0 {
		return
	}
	r.members = r.peers.Nodes(servers)
	if r.roam {
		r.entry = r.members
	}
}

// Attach makes the router one that NewRouter has made for the node of this process. Attempts at others are given up for it, and made anew.
func (r *Router) Attach(peers *Peers, near Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peers, r.roam, r.entry, r.leader, r.members, r.named = peers, false, []Node{near}, nil, nil, nil
	r.detours = newDetours(&r.mu, r.detours.report)
	for a := range r.attempts {
		a.moved = true
		a.end()
	}
}

// answered notes that a node has answered.
func (r *Router) answered(a *attempt, reply Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detours.reached(a.node)
	if a.unreachable != nil && reply.GetOutcome() == clusterpb.Outcome_DONE {
		r.detours.left = 0
	}
}

// failed notes that a node has not answered, or not forwarded.
func (r *Router) failed(a *attempt, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.moved {
		return
	}
	if _, remote := a.node.(*Client); remote && a.isLost(err) {
		r.detours.begin(a.node, time.Now())
	}
	if a.unreachable != nil {
		r.detours.leave(a.node)
		if r.leader == a.unreachable && r.detours.left > len(r.detours.forwarders(r.leader, r.servers())) { // perhaps there is another leader
			r.leader, r.detours.left = nil, 0
		}
		return
	}
	if r.leader == a.node && (!r.detours.isOut(a.node) || len(r.detours.forwarders(a.node, r.servers())) == 0) {
		r.leader = nil
	}
}

// isLost reports whether nothing came from the node although it had its whole time.
func (a *attempt) isLost(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) && time.Since(a.began) >= a.limit*3/4
}

type attemptTimeKey struct{}

// WithAttemptTime has each attempt of a router take at most so long, if that is less than AttemptTimeout.
func WithAttemptTime(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, attemptTimeKey{}, limit)
}

func attemptTime(ctx context.Context) time.Duration {
	if limit, is := ctx.Value(attemptTimeKey{}).(time.Duration); is {
		return min(limit, AttemptTimeout)
	}
	return AttemptTimeout
}
