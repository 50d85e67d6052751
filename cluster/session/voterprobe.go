package session

import (
	"context"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// voterProbe is a voter which a client without a local node probes while the leader prepares an answer. This
// is faster than a probe by the leader. Both replies confirm the answer if both nodes were in the leader's
// term after the query was sent; their order does not matter. The leader checks whether both are a quorum.
type voterProbe struct {
	mu     sync.Mutex
	node   rpc.Node // nil: unknown
	id     string
	of     uint64 // its instance
	looked time.Time
}

const voterSearchInterval = time.Second

// get returns the known voter. Without one it returns nil, and periodically starts a search among the servers
// until ctx ends.
func (p *voterProbe) get(ctx context.Context, servers func() []rpc.Node) (node rpc.Node, id string, instance uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.node == nil && time.Since(p.looked) > voterSearchInterval {
		p.looked = time.Now()
		go p.look(ctx, servers())
	}
	return p.node, p.id, p.of
}

// look takes the first server which replies and does not lead.
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

// forget drops a voter after a failed probe.
func (p *voterProbe) forget(node rpc.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.node == node {
		p.node, p.looked = nil, time.Now()
	}
}
