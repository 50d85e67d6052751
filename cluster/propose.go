package cluster

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/storepb"
)

const (
	// configChangeTimeout bounds the wait for a place in raft's queue, not for the change itself.
	configChangeTimeout = 5 * time.Second
	// changeTimeout bounds a change of the leader's own, with the wait for its turn: on a full disk nothing is done until there is space,
	// and others' changes, and all else that a leader does, are not to wait for that.
	changeTimeout = 2 * consensus.LeaderDiskLimit
)

// proposer are those of the leader's own and of administrators: they belong to no session.
type proposer struct {
	ctx        context.Context // ends when the node is closed
	raft       *consensus.Raft
	store      *raftstore.Store
	leadership *leadership
	logger     *slog.Logger

	exclusive ctxMutex // one at a time of those that look first
}

// confirmConfiguration returns nil once it is sure that this node led when it was called and that the newest configuration
// before that is committed.
func (p *proposer) confirmConfiguration(ctx context.Context) error {
	return consensus.Await(ctx, p.raft.Barrier(configChangeTimeout))
}

// administer runs a change that an administrator asks for if this node leads, one at a time.
func (p *proposer) administer(ctx context.Context, change func() (*storepb.Result, error)) *clusterpb.AdminReply {
	term, leader := p.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}
	}
	if !p.exclusive.Lock(ctx) { // whoever asked has gone, and may have asked for something else since
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_DONE}
	}
	defer p.exclusive.Unlock()
	result, err := change()
	if err != nil && !errors.Is(err, errDraining) {
		p.logger.Warn("a change by an administrator failed", "error", err)
	}
	return &clusterpb.AdminReply{Outcome: outcomeOf(err), Result: result}
}

// proposeOwn proposes a change of the leader's own, and tells whether it was recorded. That it was not is only logged: it is proposed
// again while it is due.
func (p *proposer) proposeOwn(op *storepb.Op) bool {
	ctx, cancel := context.WithTimeout(p.ctx, changeTimeout)
	defer cancel()
	if _, err := p.store.Propose(ctx, &storepb.Command{Op: op}); err != nil {
		p.logger.Warn("a change of the leader's own was not recorded", "error", err)
		return false
	}
	return true
}

// propose proposes an operation that belongs to no session.
func (p *proposer) propose(ctx context.Context, op *storepb.Op) (*storepb.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	return notBeforeItsVersion(p.store.Propose(ctx, &storepb.Command{Op: op}))
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
