package session

import (
	"context"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
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

// get answers nil while none is known; then one is looked for now and then, among the servers and while ctx lasts.
func (w *witness) get(ctx context.Context, servers func() []rpc.Node) (node rpc.Node, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.node == nil && time.Since(w.looked) > witnessInterval {
		w.looked = time.Now()
		go w.look(ctx, servers())
	}
	return w.node, w.id
}

// look takes the first server that answers and does not lead.
func (w *witness) look(ctx context.Context, servers []rpc.Node) {
	ctx, cancel := context.WithTimeout(ctx, rpc.ProbeTimeout)
	defer cancel()
	for _, node := range servers {
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
