package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// stateHasher hashes the memory of this node as of one command, for the leader's comparison.
type stateHasher struct {
	ctx    context.Context // ends when the node is closed
	fsm    *raftstore.FSM
	logger *slog.Logger

	mu    sync.Mutex
	index ids.Index
	state *clusterpb.FrozenState // hashes after the command at index; nil: none yet
}

// hashPause leaves the processor to others between some milliseconds of hashing.
const hashPause = 20 * time.Millisecond

func (h *stateHasher) run() {
	for {
		select {
		case snapshot := <-h.fsm.Frozen():
			h.hash(snapshot)
		case <-h.ctx.Done():
			return
		}
	}
}

func (h *stateHasher) hash(snapshot *namespace.Snapshot) {
	state := &clusterpb.FrozenState{KeptHash: snapshot.Hash()}
	state.Hash = snapshot.Recomputed(func() {
		select {
		case <-time.After(hashPause):
		case <-h.ctx.Done():
		}
	})
	if state.GetHash() != state.GetKeptHash() {
		h.logger.Error("something has changed in this node's memory by itself: is the memory of this host sound?", "index", snapshot.Index())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index, h.state = snapshot.Index(), state
}

// at returns the hashes after the command at an index; nil: unknown, or not ready yet.
func (h *stateHasher) at(index ids.Index) *clusterpb.FrozenState {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.index != index {
		return nil
	}
	return h.state
}
