package session

import (
	"context"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// witness is a voter that a client without a node asks for its word while the leader works out an answer: asked by the leader,
// it would be heard after that. Their words are enough if both were in the leader's term after the query was asked (see the
// package documentation); which of them was heard first does not matter. The leader judges whether the two are a majority.
type witness struct {
	mu     sync.Mutex
	node   rpc.Node // nil: none is known
	id     string
	looked time.Time
}

// witnessInterval is the least time between two looks for a witness.
const witnessInterval = time.Second

// queryWitnessed answers a query whose confirmation is up to this client if a witness is known, to the leader if not.
func (c *Client) queryWitnessed(ctx context.Context, req *clusterpb.ExecuteRequest) (*storepb.Result, error) {
	if req.GetQuery().GetSince() != 0 { // mostly answered without a majority's word
		return c.execute(ctx, req)
	}
	node, id := c.witness.get(c)
	if node == nil {
		return c.execute(ctx, req)
	}
	asked, cancel := context.WithTimeout(ctx, rpc.ProbeTimeout)
	defer cancel()
	word := make(chan uint64, 1)
	go func() {
		reply, err := node.Probe(asked, &clusterpb.ProbeRequest{})
		if err != nil || reply.GetId() != id || reply.GetLeads() {
			word <- 0
			return
		}
		word <- reply.GetTerm()
	}()
	req.Witness = id
	reply, err := rpc.Ask(ctx, c.router, rpc.Node.Execute, req)
	if err == nil && reply.GetTerm() == 0 {
		c.witness.forget(node) // the leader has asked for more
	}
	if err != nil || reply.GetTerm() == 0 {
		return reply.GetResult(), err
	}
	select {
	case term := <-word:
		if term == reply.GetTerm() {
			return reply.GetResult(), nil
		}
	case <-time.After(rpc.Promptly):
	}
	c.witness.forget(node)
	req.Witness = ""
	return c.execute(ctx, req)
}

// get answers nil while none is known; then one is looked for now and then.
func (w *witness) get(c *Client) (node rpc.Node, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.node == nil && time.Since(w.looked) > witnessInterval {
		w.looked = time.Now()
		go w.look(c)
	}
	return w.node, w.id
}

// look takes the first server that answers and does not lead.
func (w *witness) look(c *Client) {
	ctx, cancel := context.WithTimeout(c.ctx, rpc.ProbeTimeout)
	defer cancel()
	for _, node := range c.router.Entries() {
		go func() {
			reply, err := node.Probe(ctx, &clusterpb.ProbeRequest{})
			if err != nil || reply.GetLeads() {
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.node == nil {
				w.node, w.id = node, reply.GetId()
			}
		}()
	}
	<-ctx.Done()
}

// forget gives up a witness that was no help.
func (w *witness) forget(node rpc.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.node == node {
		w.node, w.looked = nil, time.Now()
	}
}
