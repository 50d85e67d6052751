package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/storepb"
)

const (
	// configChangeTimeout limits the wait for a place in raft's queue, not for the change.
	configChangeTimeout = 5 * time.Second
	// changeTimeout limits a change proposed by the leader itself, including the wait for the mutex: on a
	// full disk it must not block other changes and the leader loop.
	changeTimeout = 2 * consensus.LeaderDiskLimit
)

// proposer proposes the leader's own changes and those of administrators. They belong to no session.
type proposer struct {
	ctx        context.Context // ends when the node is closed
	raft       *consensus.Raft
	store      *raftstore.Store
	leadership *leadership
	logger     *slog.Logger

	exclusive ctxMutex // serializes changes that read the state before they propose
}

// confirmConfiguration returns nil once this node has proven that it led at the time of the call, and the
// newest configuration before that is committed.
func (p *proposer) confirmConfiguration(ctx context.Context) error {
	return consensus.Await(ctx, p.raft.Barrier(configChangeTimeout))
}

// administer runs a change for an administrator if this node leads, one at a time.
func (p *proposer) administer(ctx context.Context, change func() (*storepb.Result, error)) *clusterpb.AdminReply {
	term, leader := p.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}
	}
	if !p.exclusive.Lock(ctx) { // the caller has gone, and may have sent another request since
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_DONE}
	}
	defer p.exclusive.Unlock()
	result, err := change()
	if err != nil && !errors.Is(err, errDraining) {
		p.logger.Warn("a change by an administrator failed", "error", err)
	}
	return &clusterpb.AdminReply{Outcome: outcomeOf(err), Result: result}
}

// proposeOwn proposes a change of the leader itself and reports whether it was committed. A failure is
// only logged: the change is proposed again while it is due.
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

// notBeforeItsVersion turns the error for a part of a command that some server does not know yet into a
// result: a retry would get the same.
func notBeforeItsVersion(result *storepb.Result, err error) (*storepb.Result, error) {
	if errors.Is(err, codec.ErrNotYet) {
		return &storepb.Result{Code: storepb.Code_UNSUPPORTED, Message: err.Error()}, nil
	}
	return result, err
}

func setMember(m *storepb.Member) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_SetMember{SetMember: &storepb.SetMember{Member: m}}}
}

// errDraining is of the removal of a member whose mount may still end pending calls.
var errDraining = fmt.Errorf("%w: its mount has not ended yet", raftstore.ErrNotDone)

// outcomeOf returns the outcome for the caller.
func outcomeOf(err error) clusterpb.Outcome {
	switch {
	case err == nil:
		return clusterpb.Outcome_DONE
	case errors.Is(err, raftstore.ErrNotLeader):
		return clusterpb.Outcome_NOT_LEADER
	case errors.Is(err, raftstore.ErrNotDone):
		return clusterpb.Outcome_NOT_DONE
	default:
		return clusterpb.Outcome_UNKNOWN
	}
}

// notAnswered marks an error, if any, as one of a query without an answer.
func notAnswered(err error) error {
	if err != nil {
		err = errors.Join(raftstore.ErrNotDone, err)
	}
	return err
}
