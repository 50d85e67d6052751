package rpc

import (
	"context"
	"errors"
	"fmt"
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

// mostRedirects are followed without a pause: nodes can for a while name each other as the leader.
const mostRedirects = 2

// Router finds the leader and follows it.
type Router struct {
	mu       sync.Mutex
	peers    *Peers
	roam     bool   // entry follows the membership
	entry    []Node // whom to ask for the leader, by turns
	leader   Node   // nil: not known
	turn     int
	attempts map[*attempt]struct{} // under way
}

// attempt is one node's chance to answer.
type attempt struct {
	node  Node
	end   context.CancelFunc
	moved bool // given up for a new leader
}

// NewRouter asks the entries for the leader, by turns, and finds it among the peers.
func NewRouter(peers *Peers, entry ...Node) *Router {
	return &Router{peers: peers, entry: entry, attempts: make(map[*attempt]struct{})}
}

// NewRoamingRouter has the present members as its entries, as soon as it is told of them.
func NewRoamingRouter(peers *Peers, entry ...Node) *Router {
	r := NewRouter(peers, entry...)
	r.roam = true
	return r
}

// Answer is what says whether the asked node did what it was asked.
type Answer interface {
	GetOutcome() clusterpb.Outcome
	GetLeaderAddress() string
}

var errNoLeader = errors.New("no leader is known")

// Ask asks until a node has done it or refuses to, or ctx ends; its error then wraps ctx's and tells the last reason. A refusal says
// nothing of what became of earlier attempts. The method is mostly one of Node's: Ask(ctx, r, Node.Execute, request).
func Ask[Request any, Reply Answer](
	ctx context.Context, r *Router, method func(Node, context.Context, Request) (Reply, error), request Request,
) (Reply, error) {
	wait := firstPause
	for redirects := 0; ; {
		asking, attempt := r.begin(ctx)
		node := attempt.node
		reply, err := method(node, asking, request)
		moved := r.end(attempt)
		redirected := false
		if err == nil {
			if reply.GetOutcome() == clusterpb.Outcome_DONE {
				return reply, nil
			}
			redirected, err = r.learn(node, reply)
		} else {
			r.forget(node)
			if isFinal(err) {
				return reply, err
			}
		}
		if ctx.Err() != nil {
			return reply, fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		}
		if moved {
			continue
		}
		if redirected && redirects < mostRedirects {
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

// isFinal tells whether asking again, or another node, would not help.
func isFinal(err error) bool {
	var result *RefusedError
	var refusal Refusal
	return errors.As(err, &result) || errors.As(err, &refusal) && !refusal.isOfConnection()
}

// begin gives a node its time.
func (r *Router) begin(ctx context.Context) (context.Context, *attempt) {
	ctx, end := context.WithTimeout(ctx, AttemptTimeout)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leader == nil {
		r.leader = r.entry[r.turn%len(r.entry)]
		r.turn++
	}
	a := &attempt{node: r.leader, end: end}
	r.attempts[a] = struct{}{}
	return ctx, a
}

// end tells whether the attempt was given up.
func (r *Router) end(a *attempt) (moved bool) {
	a.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, a)
	return a.moved
}

// Lead takes up a leader that the node of this process has found, which is the only entry; no address: that is itself. Attempts at other
// nodes are given up for it: they may be at one that is stopped or cut off, and never answer. As after any attempt, what became of them
// is unknown, and is asked again.
func (r *Router) Lead(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	leader := r.entry[0]
	if address != "" {
		leader = r.peers.Node(address)
	}
	r.leader = leader
	for a := range r.attempts {
		if a.node != leader && a.node != r.entry[0] {
			a.moved = true
			a.end()
		}
	}
}

// Entrance answers a node for what any of them can answer: that of this process if there is one, else the one
// that is asked for everything.
func (r *Router) Entrance() Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.roam || r.leader == nil {
		return r.entry[r.turn%len(r.entry)]
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
func (r *Router) learn(node Node, reply Answer) (redirected bool, err error) {
	if reply.GetOutcome() != clusterpb.Outcome_NOT_LEADER {
		return false, fmt.Errorf("the leader answered %v", reply.GetOutcome())
	}
	if reply.GetLeaderAddress() == "" {
		r.forget(node)
		return false, errNoLeader
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leader = r.peers.Node(reply.GetLeaderAddress())
	return true, fmt.Errorf("the leader is at %s", reply.GetLeaderAddress())
}

// Meet takes up the present members as those to ask, if the router roams.
func (r *Router) Meet(servers []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.roam && len(servers) > 0 {
		r.entry = r.peers.Nodes(servers)
	}
}

// Settle makes the router one that NewRouter has made for the node of this process. Attempts at others are given up for it, and made anew.
func (r *Router) Settle(peers *Peers, near Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peers, r.roam, r.entry, r.leader = peers, false, []Node{near}, nil
	for a := range r.attempts {
		a.moved = true
		a.end()
	}
}
