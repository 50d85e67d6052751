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

// AttemptTimeout is how long one node may take before another is asked.
const AttemptTimeout = 2 * time.Second

// Pauses between attempts, after immediate ones did not help.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// maxRedirects is the number of redirects without a pause: nodes may name each other as the leader for a
// while.
const maxRedirects = 2

// Router finds and follows the leader. If the leader is unreachable, another server forwards the calls, and
// the router keeps trying the direct way.
type Router struct {
	mu       sync.Mutex
	peers    *Peers
	roam     bool   // entry follows the membership
	entry    []Node // nodes to ask for the leader, in turn
	leader   Node   // nil: unknown
	turn     int
	attempts map[*attempt]struct{} // under way
	members  []Node                // present members, as far as known
	named    []Node                // named as the leader, newest last
	detours  *detours
}

// attempt is one node's chance to answer.
type attempt struct {
	node        Node
	unreachable Node // leader to forward to; nil: node does the request
	began       time.Time
	limit       time.Duration
	end         context.CancelFunc
	moved       bool // cancelled for a new leader
}

// NewRouter asks the entries for the leader, in turn, and connects to it through the peers.
func NewRouter(peers *Peers, entry ...Node) *Router {
	r := &Router{peers: peers, entry: entry, attempts: make(map[*attempt]struct{})}
	r.detours = newDetours(&r.mu, func(string, string) {})
	return r
}

// ReportDetours sets a callback for each server, via, which starts to forward to a leader; no via: the leader
// is reachable again. Call it before the router is used. report must not wait.
func (r *Router) ReportDetours(report func(leader, via string)) { r.detours.report = report }

// NewRoamingRouter uses the present members as entries, once it knows them.
func NewRoamingRouter(peers *Peers, entry ...Node) *Router {
	r := NewRouter(peers, entry...)
	r.roam = true
	return r
}

var errNoLeader = errors.New("no leader is known")

// Ask retries until a node has done the request or refuses it, or ctx ends; then the error also has the
// last reason. A refusal says nothing about earlier attempts. method is mostly one of Node's: Ask(ctx, r,
// Node.Execute, request).
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
			case unproven != nil: // names the next step; other servers may only be unreachable
				err = unproven
			case before != nil && errors.Is(err, ctx.Err()): // this attempt had no time for more
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

// begin starts an attempt.
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

// A Guide is a node of this process with the addresses of the other servers. Servers of another cluster at
// these addresses must do nothing.
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

// cluster returns the id of the cluster for detoured requests; empty: any.
func (r *Router) cluster() string {
	if guide := r.guide(); guide != nil {
		return guide.ClusterID()
	}
	return ""
}

// servers returns all known servers besides a node of this process.
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

// maxNamed limits the remembered servers named as the leader.
const maxNamed = 8

// noteNamed records a server named as the leader.
func (r *Router) noteNamed(leader Node) {
	if !slices.Contains(r.named, leader) {
		r.named = append(r.named, leader)
		r.named = r.named[max(0, len(r.named)-maxNamed):]
	}
}

// nextEntry returns the next node to ask for the leader, preferably a reachable one.
func (r *Router) nextEntry() Node {
	first := r.entry[r.turn%len(r.entry)]
	for range r.entry {
		node := r.entry[r.turn%len(r.entry)]
		if r.turn++; !r.detours.isOut(node) {
			return node
		}
	}
	r.turn++ // all are unreachable: take turns
	return first
}

// end reports whether the attempt was cancelled.
func (r *Router) end(a *attempt) (moved bool) {
	a.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, a)
	return a.moved
}

// SetLeader sets the leader found by the node of this process, the only entry; no address: this node itself.
// It cancels attempts at other nodes, which may be stopped or cut off and never answer. As always, their
// outcome is unknown, and the router repeats them.
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

// AnyNode returns a node for requests of any kind: the one of this process, or else the present leader.
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

// Entries returns the nodes to ask for the leader.
func (r *Router) Entries() []Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entry
}

// forget makes the next attempt start at an entry, unless the leader was found meanwhile.
func (r *Router) forget(node Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leader == node {
		r.leader = nil
	}
}

// learn takes the leader's address from a reply of another node. redirected means: there is a better node to
// ask.
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

// SetMembers sets the present members, as forwarders, and as entries of a roaming router.
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

// Attach turns the router into one of NewRouter for the node of this process. It cancels attempts at
// others and repeats them.
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

// answered records a reply.
func (r *Router) answered(a *attempt, reply Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detours.reached(a.node)
	if a.unreachable != nil && reply.GetOutcome() == clusterpb.Outcome_DONE {
		r.detours.left = 0
	}
}

// failed records an attempt without a reply, or without forwarding.
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

// isLost reports whether a node sent nothing in all of its time.
func (a *attempt) isLost(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) && time.Since(a.began) >= a.limit*3/4
}

type attemptTimeKey struct{}

// WithAttemptTime shortens each attempt of a router, if limit is below AttemptTimeout.
func WithAttemptTime(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, attemptTimeKey{}, limit)
}

func attemptTime(ctx context.Context) time.Duration {
	if limit, is := ctx.Value(attemptTimeKey{}).(time.Duration); is {
		return min(limit, AttemptTimeout)
	}
	return AttemptTimeout
}
