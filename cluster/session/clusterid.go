package session

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// clusterBinding binds a mount to the first cluster it contacts. Afterwards it accepts only a successor,
// restored or recovered from the state of this cluster. All requests contain the cluster id, and other
// clusters refuse them. So restarted servers of the old cluster, even with a quorum, cannot grant locks to
// this mount.
type clusterBinding struct {
	onRebind func(from, to string) // called when a successor replaces the cluster
	logger   *slog.Logger

	mu      sync.Mutex
	id      string // empty: no contact yet
	foreign map[string]bool
}

const maxForeign = 100

func (b *clusterBinding) get() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.id
}

// is reports whether id is the mount's cluster. Unknown ids match.
func (b *clusterBinding) is(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return id == "" || b.id == "" || id == b.id
}

// sawForeign reports whether servers of other clusters have replied.
func (b *clusterBinding) sawForeign() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.foreign) > 0
}

// check checks the cluster id in a reply to a request with the id asked. The reply is valid if there is no
// error.
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

// rebind gives up the session after a successor has replaced the cluster. The successor has ended the
// session.
func (c *Client) rebind(from, to string) {
	c.journal.bind(to)
	if from != "" {
		c.logger.Warn("the cluster was recovered or restored as another one: the locks of this mount there are lost", "was", from, "is", to)
		if session, _ := c.active.get(); session != nil {
			c.lose(session)
		}
	}
}

// execute sends a request with the id of the mount's cluster to nodes until one has done it.
func (c *Client) execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	return c.executeEach(ctx, req, func() {})
}

// executeEach is execute with a function to call before each attempt.
func (c *Client) executeEach(ctx context.Context, req *clusterpb.ExecuteRequest, before func()) (*clusterpb.ExecuteReply, error) {
	return rpc.Ask(ctx, c.router, func(to rpc.Node, ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
		asked := c.cluster.get()
		req.Cluster = asked
		before()
		reply, err := to.Execute(ctx, req)
		if err == nil {
			err = c.cluster.check(asked, reply.GetOutcome(), reply.GetCluster())
		}
		if err == nil && reply.GetOutcome() == clusterpb.Outcome_DONE { // other nodes may be behind
			c.lookForVoters(reply.GetVoters())
		}
		return reply, err
	}, req)
}

// lookForVoters triggers a keepalive, which fetches the voters, after a reply with a changed set of voters.
// All known voters may be replaced before the next keepalive is due.
func (c *Client) lookForVoters(voters uint64) {
	known := c.voters.Load()
	if voters != 0 && known != 0 && voters != known && c.voters.CompareAndSwap(known, voters) {
		c.keepaliveNow()
	}
}
