package session

import (
	"context"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Query answers from the state as it is after everything that was acknowledged before. An error wraps
// context.DeadlineExceeded (see Create), or why ctx has ended.
func (c *Client) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	if refused := c.notYet(query); refused != nil {
		return refused, nil
	}
	if c.near != nil {
		if result := c.near.QuerySince(query); result != nil {
			return result, nil
		}
	}
	if !waits(query) {
		if err := c.mayAsk(anything); err != nil {
			return nil, err
		}
	}
	ctx, cancel := c.patience(ctx, anything)
	defer cancel()
	result, err := c.query(ctx, query)
	if err == nil && query.GetSince() == 0 && query.GetAwaitLock() == nil { // which one node may answer by itself
		c.answered(anything)
	}
	return result, err
}

// waits tells of queries that are answered when something happens. Whoever asks them waits anyway, again and again.
func waits(query *storepb.Query) bool {
	return query.GetListEvents().GetWait() || query.GetAwaitChange() != nil || query.GetAwaitLock() != nil
}

func (c *Client) query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	request := &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: query}}
	if c.near != nil {
		voter, term := c.near.Word()
		request.Voter, request.Term = voter, uint64(term)
		return c.answer(ctx, request)
	}
	return c.queryProbing(ctx, request)
}

func (c *Client) answer(ctx context.Context, req *clusterpb.ExecuteRequest) (*storepb.Result, error) {
	reply, err := c.execute(ctx, req)
	return reply.GetResult(), err
}

// queryProbing answers a query whose confirmation is up to this client if a voter to probe is known, to the leader if not.
func (c *Client) queryProbing(ctx context.Context, req *clusterpb.ExecuteRequest) (*storepb.Result, error) {
	if req.GetQuery().GetSince() != 0 { // mostly answered without a majority's word
		return c.answer(ctx, req)
	}
	node, id := c.probed.get(c.ctx, c.router.Entries)
	if node == nil {
		return c.answer(ctx, req)
	}
	asked, cancel := context.WithTimeout(ctx, rpc.ProbeTimeout)
	defer cancel()
	word := make(chan ids.Term, 1)
	go func() {
		reply, err := node.Probe(asked, &clusterpb.ProbeRequest{})
		if err != nil || reply.GetId() != id || reply.GetLeads() || !c.cluster.is(reply.GetCluster()) {
			word <- 0
			return
		}
		word <- ids.Term(reply.GetTerm())
	}()
	req.Probed = id
	reply, err := c.execute(ctx, req)
	if err == nil && reply.GetTerm() == 0 {
		c.probed.forget(node) // the leader has asked for more
	}
	if err != nil || reply.GetTerm() == 0 {
		return reply.GetResult(), err
	}
	select {
	case term := <-word:
		if term == ids.Term(reply.GetTerm()) {
			return reply.GetResult(), nil
		}
	case <-time.After(rpc.Promptly):
	}
	c.probed.forget(node)
	req.Probed = ""
	return c.answer(ctx, req)
}
