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

// Errors of [Store.Propose]: what is known of a command that has no result.
var (
	// ErrNotLeader: nothing was done, another node leads.
	ErrNotLeader = errors.New("not the leader")
	// ErrNotDone: nothing was done, and nothing of it will come later.
	ErrNotDone = errors.New("not done")
	// ErrUnknown: it may have been done or may come later. The same command can be proposed again: its
	// session and number see to it that it is done once.
	ErrUnknown = errors.New("outcome unknown")
)

// Applier is the part of raft that Propose needs.
type Applier interface {
	Apply(cmd []byte, timeout time.Duration) raft.ApplyFuture
}

// Store proposes commands; it is the only thing that does.
type Store struct {
	Raft Applier
	Now  func() int64 // cluster time, nanoseconds since the Unix epoch
	// Version is that at which the cluster runs at least.
	Version func() uint32
	// Committed is told how long each command took from being proposed until this node had applied it; nil: nobody wants to know.
	Committed func(time.Duration)
	// Foretell is told of each operation before it goes into the log, and what it answers is called when that is over; nil: nobody wants to
	// know.
	Foretell func(*storepb.Op) (over func())
	// Settle waits until the result of the command with an index may be told; nil: it always may.
	Settle func(context.Context, ids.Index) error
}

// Propose stamps a command with cluster time, puts it into the log and waits until this node has
// applied it or ctx ends. Its error is one of ErrNotLeader, ErrNotDone and ErrUnknown, wrapped. A command that this program does
// not know all of is not proposed (ErrNotDone and codec.ErrNewer or codec.ErrOlder), nor one with a part that is newer than the
// cluster's version (ErrNotDone and codec.ErrNotYet).
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

// SortRaftError tells what is known of a command by raft's error. Only these three kinds are sure that
// the command never got into the log.
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
