package session

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// clusterBinding is to which cluster a mount belongs: the first that it meets, and then only one that goes on for it, because it was recovered
// or restored from its state. All that is asked says so and is done by no other, so servers of a cluster that is over, which
// are started again and have a majority among themselves, give nobody a lock who has been with the one that goes on.
type clusterBinding struct {
	onRebind func(from, to string) // is told when another cluster goes on for the mount's
	logger   *slog.Logger

	mu      sync.Mutex
	id      string // empty: it has met none yet
	foreign map[string]bool
}

// maxForeign is how many clusters are told of that are not the mount's.
const maxForeign = 100

func (b *clusterBinding) get() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.id
}

// is tells whether an id is the mount's cluster's, as far as both are known.
func (b *clusterBinding) is(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return id == "" || b.id == "" || id == b.id
}

// sawForeign tells whether servers of other clusters have answered.
func (b *clusterBinding) sawForeign() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.foreign) > 0
}

// check is told which cluster has answered what was asked in the name of another one, or the same. The answer counts unless there is
// an error.
func (b *clusterBinding) check(asked string, outcome clusterpb.Outcome, answered string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case outcome != clusterpb.Outcome_OTHER_CLUSTER && (answered == "" || answered == b.id):
		return nil
	case outcome != clusterpb.Outcome_OTHER_CLUSTER && asked == b.id:
		b.id = answered
		b.onRebind(asked, answered)
		return nil
	}
	if b.foreign == nil {
		b.foreign = make(map[string]bool)
	}
	if !b.foreign[answered] && len(b.foreign) < maxForeign {
		b.foreign[answered] = true
		b.logger.Error("a server of another cluster is not asked: it does not go on for this mount's; end it, or, if it is to be used, mount anew",
			"its", answered, "this", b.id)
	}
	return fmt.Errorf("the server is of cluster %q, which does not go on for this mount's, %q", answered, b.id)
}

// rebind gives up what this mount had in a cluster that is over. The one that goes on has ended its session.
func (c *Client) rebind(from, to string) {
	c.journal.bind(to)
	if from != "" {
		c.logger.Warn("the cluster was recovered or restored as another one: what this mount had locked there is lost", "was", from, "is", to)
		if session, _ := c.active.get(); session != nil {
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
			err = c.cluster.check(asked, reply.GetOutcome(), reply.GetCluster())
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
		c.keepaliveNow()
	}
}
