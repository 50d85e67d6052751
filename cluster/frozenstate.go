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

// frozenState hashes the memory of this node as it was after a command that all nodes apply, for the leader to compare.
type frozenState struct {
	ctx    context.Context // ends when the node is closed
	fsm    *raftstore.FSM
	logger *slog.Logger

	mu    sync.Mutex
	index ids.Index
	state *clusterpb.FrozenState // after the command with that index; nil: of none yet
}

// hashPause is how long it rests after some milliseconds of hashing: others need the processor too.
const hashPause = 20 * time.Millisecond

func (f *frozenState) run() {
	for {
		select {
		case snapshot := <-f.fsm.Frozen():
			f.hash(snapshot)
		case <-f.ctx.Done():
			return
		}
	}
}

func (f *frozenState) hash(snapshot *namespace.Snapshot) {
	state := &clusterpb.FrozenState{KeptHash: snapshot.Hash()}
	state.Hash = snapshot.Recomputed(func() {
		select {
		case <-time.After(hashPause):
		case <-f.ctx.Done():
		}
	})
	if state.GetHash() != state.GetKeptHash() {
		f.logger.Error("something has changed in this node's memory by itself: is the memory of this host sound?", "index", snapshot.Index())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.index, f.state = snapshot.Index(), state
}

// after answers the state after the command with an index; nil: it is not known, or not yet.
func (f *frozenState) after(index ids.Index) *clusterpb.FrozenState {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.index != index {
		return nil
	}
	return f.state
}
