package session

import (
	"context"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// voterProbe is one that a client without a node probes while the leader works out an answer: asked by the leader,
// it would be heard after that. Their words are enough if both were in the leader's term after the query was asked (see the
// package documentation); which of them was heard first does not matter. The leader judges whether the two are a majority.
type voterProbe struct {
	mu     sync.Mutex
	node   rpc.Node // nil: none is known
	id     string
	of     uint64 // its instance
	looked time.Time
}

// voterSearchInterval is the least time between two searches for such a voter.
const voterSearchInterval = time.Second

// get answers nil while none is known; then one is looked for now and then, among the servers and while ctx lasts.
func (p *voterProbe) get(ctx context.Context, servers func() []rpc.Node) (node rpc.Node, id string, instance uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.node == nil && time.Since(p.looked) > voterSearchInterval {
		p.looked = time.Now()
		go p.look(ctx, servers())
	}
	return p.node, p.id, p.of
}

// look takes the first server that answers and does not lead.
func (p *voterProbe) look(ctx context.Context, servers []rpc.Node) {
	ctx, cancel := context.WithTimeout(ctx, rpc.ProbeTimeout)
	defer cancel()
	for _, node := range servers {
		go func() {
			reply, err := node.Probe(ctx, &clusterpb.ProbeRequest{})
			if err != nil || reply.GetLeads() {
				return
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.node == nil {
				p.node, p.id, p.of = node, reply.GetId(), reply.GetInstance()
			}
		}()
	}
	<-ctx.Done()
}

// forget gives up a voter that was no help.
func (p *voterProbe) forget(node rpc.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.node == node {
		p.node, p.looked = nil, time.Now()
	}
}
