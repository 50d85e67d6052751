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

// stateHasher hashes the memory of this node as it was after a command that all nodes apply, for the leader to compare.
type stateHasher struct {
	ctx    context.Context // ends when the node is closed
	fsm    *raftstore.FSM
	logger *slog.Logger

	mu    sync.Mutex
	index ids.Index
	state *clusterpb.FrozenState // after the command with that index; nil: of none yet
}

// hashPause is how long it rests after some milliseconds of hashing: others need the processor too.
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

// at answers the state after the command with an index; nil: it is not known, or not yet.
func (h *stateHasher) at(index ids.Index) *clusterpb.FrozenState {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.index != index {
		return nil
	}
	return h.state
}
