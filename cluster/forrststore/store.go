package forrststore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"lockfs/cluster/session"
	"lockfs/formats/forrst"
)

var _ forrst.Store = (*Store)(nil)

// Store is one server's part.
type Store struct {
	tree
	host   string
	waiter atomic.Uint64 // numbers the requests in line
}

// Open makes the directory if there is none. The client is one of its own, opened with NoLockDelay: nothing
// relies on a place in line once its session has ended.
func Open(ctx context.Context, client *session.Client) (*Store, error) {
	s := &Store{tree: tree{client: client}, host: client.Status().GetHost()}
	if client.Session() == 0 {
		return nil, errors.New("cluster time is not known")
	}
	_, err := s.where(ctx)
	return s, err
}

// Now is part of [forrst.Store].
func (s *Store) Now() time.Time { return s.client.ClusterTime().UTC() }
