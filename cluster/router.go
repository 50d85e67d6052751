package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
)

// attemptTimeout is how long one node may take to answer before another is asked.
const attemptTimeout = 2 * time.Second

// How long to wait before asking again where asking at once did not help.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// mostRedirects are followed without a pause: nodes can for a while name each other as the leader.
const mostRedirects = 2

// router finds the leader and follows it.
type router struct {
	peers *peers
	roam  bool // entry follows the membership

	mu     sync.Mutex
	entry  []clusterpb.NodeClient // whom to ask for the leader, by turns
	leader clusterpb.NodeClient   // nil: not known
	turn   int
}

// answer is what says whether the asked node did what it was asked.
type answer interface {
	GetOutcome() clusterpb.Outcome
	GetLeaderAddress() string
}

var errNoLeader = errors.New("no leader is known")

// do asks until a node has done it, or ctx ends; its error then wraps ctx's and tells the last reason.
func (r *router) do(ctx context.Context, ask func(context.Context, clusterpb.NodeClient) (answer, error)) error {
	pause := firstPause
	for redirects := 0; ; {
		node := r.pick()
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		reply, err := ask(attempt, node)
		cancel()
		redirected := false
		if err == nil {
			if reply.GetOutcome() == clusterpb.Outcome_DONE {
				return nil
			}
			redirected, err = r.learn(node, reply)
		} else {
			r.forget(node)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		}
		if redirected && redirects < mostRedirects {
			redirects++
			continue
		}
		redirects = 0
		select {
		case <-time.After(pause):
			pause = min(2*pause, longestPause)
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		}
	}
}

func (r *router) pick() clusterpb.NodeClient {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leader == nil {
		r.leader = r.entry[r.turn%len(r.entry)]
		r.turn++
	}
	return r.leader
}

// entrance answers a node for what any of them can answer: that of this process if there is one, else the one
// that is asked for everything.
func (r *router) entrance() clusterpb.NodeClient {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.roam || r.leader == nil {
		return r.entry[r.turn%len(r.entry)]
	}
	return r.leader
}

// entries answers all whom it may ask for the leader.
func (r *router) entries() []clusterpb.NodeClient {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entry
}

// forget makes the next attempt begin at an entry, unless somebody found the leader meanwhile.
func (r *router) forget(node clusterpb.NodeClient) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leader == node {
		r.leader = nil
	}
}

// learn takes the leader's address from the answer of a node that did not do it. redirected says that
// somebody better to ask is known.
func (r *router) learn(node clusterpb.NodeClient, reply answer) (redirected bool, err error) {
	if reply.GetOutcome() != clusterpb.Outcome_NOT_LEADER {
		return false, fmt.Errorf("the leader answered %v", reply.GetOutcome())
	}
	if reply.GetLeaderAddress() == "" {
		r.forget(node)
		return false, errNoLeader
	}
	leader, err := r.peers.node(reply.GetLeaderAddress())
	if err != nil {
		r.forget(node)
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leader = leader
	return true, fmt.Errorf("the leader is at %s", reply.GetLeaderAddress())
}

// meet takes up the present members as those to ask, if the router roams.
func (r *router) meet(servers []string) {
	if !r.roam || len(servers) == 0 {
		return
	}
	entry, err := r.peers.all(servers)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry = entry
}
