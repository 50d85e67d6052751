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

// Store is the store of one server.
type Store struct {
	tree
	host   string
	waiter atomic.Uint64 // last number of a request in line
}

// Open opens the store, and creates its directory if necessary. The client belongs to the store alone, with
// NoLockDelay: a place in line is useless after its session.
func Open(ctx context.Context, client *session.Client) (*Store, error) {
	s := &Store{tree: tree{client: client}, host: client.Status().GetHost()}
	if client.Session() == 0 {
		return nil, errors.New("cluster time is not known")
	}
	_, err := s.where(ctx)
	return s, err
}

// Now implements [forrst.Store].
func (s *Store) Now() time.Time { return s.client.ClusterTime().UTC() }
