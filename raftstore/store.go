package raftstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// enqueueTimeout is how long a command waits for a place in a busy leader's queue.
const enqueueTimeout = 5 * time.Second

// Errors of [Store.Propose]: the outcome of a command without a result.
var (
	// ErrNotLeader: another node leads; the command was not executed.
	ErrNotLeader = errors.New("not the leader")
	// ErrNotDone: the command was not executed and will not be.
	ErrNotDone = errors.New("not done")
	// ErrUnknown: the command may have been executed, or may be later. It can be proposed again: its session
	// and number make sure that it is executed once.
	ErrUnknown = errors.New("outcome unknown")
)

// Applier is the part of raft needed by Propose.
type Applier interface {
	Apply(cmd []byte, timeout time.Duration) raft.ApplyFuture
}

// Store proposes commands; nothing else does.
type Store struct {
	Raft Applier
	Now  func() int64 // cluster time, nanoseconds since the Unix epoch
	// Version returns a version reached by the cluster.
	Version func() uint32
	// Committed is called with the time from each command's proposal until this node applied it; nil: not
	// called.
	Committed func(time.Duration)
	// Called with each operation before it goes into the log. The returned function is called when that
	// operation is over. nil: not called.
	Foretell func(*storepb.Op) (over func())
	// Settle waits until the result of the command with an index may be returned; nil: it always may.
	Settle func(context.Context, ids.Index) error
}

// Propose stamps a command with cluster time, puts it into the log and waits until this node has applied it
// or ctx ends. The error wraps ErrNotLeader, ErrNotDone or ErrUnknown. Propose refuses a command with parts
// unknown to this program (ErrNotDone and codec.ErrNewer or codec.ErrOlder). It also refuses one with a part
// newer than the cluster's version (ErrNotDone and codec.ErrNotYet).
func (s *Store) Propose(ctx context.Context, cmd *storepb.Command) (*storepb.Result, error) {
	cmd.Time = s.Now()
	data, err := codec.EncodeCommand(cmd)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotDone, err)
	}
	if err := codec.CheckMayPropose(data, cmd, s.Version()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotDone, err)
	}
	began := time.Now()
	over := func() {}
	if s.Foretell != nil {
		over = s.Foretell(cmd.GetOp())
	}
	future := s.Raft.Apply(data, enqueueTimeout)
	answered := make(chan error, 1)
	go func() {
		err := future.Error()
		over()
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil {
			return nil, SortRaftError(err)
		}
		if err, notApplied := future.Response().(error); notApplied {
			return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		if s.Committed != nil {
			s.Committed(time.Since(began))
		}
		if s.Settle != nil {
			if err := s.Settle(ctx, ids.Index(future.Index())); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
			}
		}
		return future.Response().(*storepb.Result), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	}
}

// SortRaftError wraps raft's error with the outcome of the command. With only three kinds of errors, the
// command certainly never got into the log.
func SortRaftError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader):
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	case errors.Is(err, raft.ErrEnqueueTimeout), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%w: %w", ErrNotDone, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
}
