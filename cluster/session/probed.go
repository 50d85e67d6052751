package session

import (
	"context"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// probedVoter is one that a client without a node probes while the leader works out an answer: asked by the leader,
// it would be heard after that. Their words are enough if both were in the leader's term after the query was asked (see the
// package documentation); which of them was heard first does not matter. The leader judges whether the two are a majority.
type probedVoter struct {
	mu     sync.Mutex
	node   rpc.Node // nil: none is known
	id     string
	of     uint64 // its instance
	looked time.Time
}

// probedInterval is the least time between two searches for such a voter.
const probedInterval = time.Second

// get answers nil while none is known; then one is looked for now and then, among the servers and while ctx lasts.
func (v *probedVoter) get(ctx context.Context, servers func() []rpc.Node) (node rpc.Node, id string, instance uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.node == nil && time.Since(v.looked) > probedInterval {
		v.looked = time.Now()
		go v.look(ctx, servers())
	}
	return v.node, v.id, v.of
}

// look takes the first server that answers and does not lead.
func (v *probedVoter) look(ctx context.Context, servers []rpc.Node) {
	ctx, cancel := context.WithTimeout(ctx, rpc.ProbeTimeout)
	defer cancel()
	for _, node := range servers {
		go func() {
			reply, err := node.Probe(ctx, &clusterpb.ProbeRequest{})
			if err != nil || reply.GetLeads() {
				return
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.node == nil {
				v.node, v.id, v.of = node, reply.GetId(), reply.GetInstance()
			}
		}()
	}
	<-ctx.Done()
}

// forget gives up a voter that was no help.
func (v *probedVoter) forget(node rpc.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.node == node {
		v.node, v.looked = nil, time.Now()
	}
}
