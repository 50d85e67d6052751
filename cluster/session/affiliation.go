package session

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// affiliation is to which cluster a mount belongs: the first that it meets, and then only one that goes on for it, because it was recovered
// or restored from its state. All that is asked says so and is done by no other, so servers of a cluster that is over, which
// are started again and have a majority among themselves, give nobody a lock who has been with the one that goes on.
type affiliation struct {
	moved  func(from, to string) // is told when another cluster goes on for the mount's
	logger *slog.Logger

	mu     sync.Mutex
	id     string // empty: it has met none yet
	others map[string]bool
}

// mostOthers is how many clusters are told of that are not the mount's.
const mostOthers = 100

func (a *affiliation) get() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.id
}

// is tells whether an id is the mount's cluster's, as far as both are known.
func (a *affiliation) is(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return id == "" || a.id == "" || id == a.id
}

// metOthers tells whether servers of other clusters have answered.
func (a *affiliation) metOthers() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.others) > 0
}

// take is told which cluster has answered what was asked in the name of another one, or the same. The answer counts unless there is
// an error.
func (a *affiliation) take(asked string, outcome clusterpb.Outcome, answered string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case outcome != clusterpb.Outcome_OTHER_CLUSTER && (answered == "" || answered == a.id):
		return nil
	case outcome != clusterpb.Outcome_OTHER_CLUSTER && asked == a.id:
		a.id = answered
		a.moved(asked, answered)
		return nil
	}
	if a.others == nil {
		a.others = make(map[string]bool)
	}
	if !a.others[answered] && len(a.others) < mostOthers {
		a.others[answered] = true
		a.logger.Error("a server of another cluster is not asked: it does not go on for this mount's; end it, or, if it is to be used, mount anew",
			"its", answered, "this", a.id)
	}
	return fmt.Errorf("the server is of cluster %q, which does not go on for this mount's, %q", answered, a.id)
}

// moved gives up what this mount had in a cluster that is over. The one that goes on has ended its session.
func (c *Client) moved(from, to string) {
	c.journal.belong(to)
	if from != "" {
		c.logger.Warn("the cluster was recovered or restored as another one: what this mount had locked there is lost", "was", from, "is", to)
		if session, _ := c.current.get(); session != nil {
			c.lose(session)
		}
	}
}

// execute asks nodes in the name of the mount's cluster, until one has done it.
func (c *Client) execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	return c.executeEach(ctx, req, func() {})
}

// executeEach is execute with something to do before each time that the request is sent.
func (c *Client) executeEach(ctx context.Context, req *clusterpb.ExecuteRequest, before func()) (*clusterpb.ExecuteReply, error) {
	return rpc.Ask(ctx, c.router, func(to rpc.Node, ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
		asked := c.cluster.get()
		req.Cluster = asked
		before()
		reply, err := to.Execute(ctx, req)
		if err == nil {
			err = c.cluster.take(asked, reply.GetOutcome(), reply.GetCluster())
		}
		if err == nil && reply.GetOutcome() == clusterpb.Outcome_DONE { // whoever does not lead may be behind
			c.lookForVoters(reply.GetVoters())
		}
		return reply, err
	}, req)
}

// lookForVoters has a keepalive ask who the voters are once somebody says that they are others: before the next keepalive that is due, all
// that are known may have been replaced.
func (c *Client) lookForVoters(voters uint64) {
	known := c.voters.Load()
	if voters != 0 && known != 0 && voters != known && c.voters.CompareAndSwap(known, voters) {
		c.hurry()
	}
}
