package forrststore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/cluster"
	"lockfs/formats/forrst"
	"lockfs/raftstore/storepb"
)

var _ forrst.Store = (*Store)(nil)

// Store is one server's part.
type Store struct {
	client *cluster.Client
	host   string
	waiter atomic.Uint64 // numbers the requests in line

	mu    sync.Mutex
	place *place // nil: to be looked up
}

// Open makes the directory if there is none. The client is one of its own, opened with NoLockDelay: nothing
// relies on a place in line once its session has ended.
func Open(ctx context.Context, client *cluster.Client) (*Store, error) {
	s := &Store{client: client, host: client.Status().GetHost()}
	if client.Session() == 0 {
		return nil, errors.New("cluster time is not known")
	}
	_, err := s.where(ctx)
	return s, err
}

// Now is part of [forrst.Store].
func (s *Store) Now() time.Time { return s.client.ClusterTime().UTC() }

func (s *Store) caller() *storepb.Caller {
	return &storepb.Caller{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid()), Pid: uint32(os.Getpid())}
}

func (s *Store) mutate(ctx context.Context, op *storepb.Op) (*storepb.Result, error) {
	return s.client.Mutate(ctx, s.caller(), op)
}

// refused is what the namespace says no with, where it should not.
func refused(what string, result *storepb.Result) error {
	return fmt.Errorf("%s: %v %s", what, result.GetCode(), result.GetMessage())
}
