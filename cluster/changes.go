package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/storepb"
)

// configChangeTimeout bounds the wait for a place in raft's queue, not for the change itself.
const configChangeTimeout = 5 * time.Second

// changes are those of the leader's own and of administrators: they belong to no session.
type changes struct {
	ctx        context.Context // ends when the node is closed
	raft       *consensus.Raft
	store      *raftstore.Store
	leadership *leadership
	logger     *slog.Logger

	mu sync.Mutex // one at a time of those that look first
}

// confirmConfiguration returns nil once it is sure that this node led when it was called and that the newest configuration
// before that is committed.
func (c *changes) confirmConfiguration(ctx context.Context) error {
	return consensus.Await(ctx, c.raft.Barrier(configChangeTimeout))
}

// administer runs a change that an administrator asks for if this node leads, one at a time.
func (c *changes) administer(ctx context.Context, change func() (*storepb.Result, error)) *clusterpb.AdminReply {
	term, leader := c.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil { // whoever asked has gone, and may have asked for something else since
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_DONE}
	}
	result, err := change()
	if err != nil {
		c.logger.Warn("a change by an administrator failed", "error", err)
	}
	return &clusterpb.AdminReply{Outcome: outcomeOf(err), Result: result}
}

// proposeOwn proposes a change of the leader's own. That it failed is only logged: it is proposed again while it is due.
func (c *changes) proposeOwn(op *storepb.Op) { c.proposeFor(nil, op) }

// proposeFor is proposeOwn for what somebody has asked for; nil: nobody.
func (c *changes) proposeFor(by *storepb.Caller, op *storepb.Op) {
	if _, err := c.store.Propose(c.ctx, &storepb.Command{Caller: by, Op: op}); err != nil {
		c.logger.Warn("a change of the leader's own was not recorded", "error", err)
	}
}

// propose proposes an operation that belongs to no session.
func (c *changes) propose(ctx context.Context, op *storepb.Op) (*storepb.Result, error) {
	return notBeforeItsVersion(c.store.Propose(ctx, &storepb.Command{Op: op}))
}

// notBeforeItsVersion makes an answer of the error that a command has a part which not all servers know yet: who asks again would
// hear the same.
func notBeforeItsVersion(result *storepb.Result, err error) (*storepb.Result, error) {
	if errors.Is(err, codec.ErrNotYet) {
		return &storepb.Result{Code: storepb.Code_UNSUPPORTED, Message: err.Error()}, nil
	}
	return result, err
}

func setMember(m *storepb.Member) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_SetMember{SetMember: &storepb.SetMember{Member: m}}}
}
