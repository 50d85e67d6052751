package forrststore

import (
	"context"
	"errors"
	"hash/fnv"
	"os"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// standInLine returns once nobody is before this request in the line for a key, or the reason why it does not
// wait any longer. A request that loses its place, because this server was given up on, stands behind.
func (s *Store) standInLine(ctx context.Context, key string) (leave func(), err error) {
	at := byteOf(key)
	op := &storepb.TakeLock{
		Kind: storepb.LockKind_RECORD, Type: storepb.LockType_EXCLUSIVE, Owner: s.waiter.Add(1),
		Start: at, End: at, Pid: uint32(os.Getpid()), Wait: true,
	}
	for {
		p, err := s.where(ctx)
		if err != nil {
			return nil, err
		}
		op.Ino, op.Session = uint64(p.queue), 0
		result, err := s.client.Lock(ctx, s.caller(), op)
		switch {
		case err != nil:
			return nil, errors.Join(ctx.Err(), err)
		case result.GetCode() == storepb.Code_OK:
			return func() { go s.leave(p, ids.Owner(op.GetOwner())) }, nil
		case result.GetCode() == storepb.Code_STALE:
			s.misplaced(p)
		case result.GetCode() != storepb.Code_SESSION_LOST && result.GetCode() != storepb.Code_NOT_FOUND:
			return nil, refused(queueName, result)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// leave lets the next one come forward, for whom nothing else would while this server lives.
func (s *Store) leave(p *place, owner ids.Owner) {
	op := &storepb.DropLocks{Ino: uint64(p.queue), Kind: storepb.LockKind_RECORD, Owners: []uint64{uint64(owner)}}
	for {
		_, err := s.mutate(context.Background(), &storepb.Op{Op: &storepb.Op_DropLocks{DropLocks: op}})
		if !errors.Is(err, context.DeadlineExceeded) { // done, or the client is closed
			return
		}
		time.Sleep(retryPause)
	}
}

// retryPause is before what a cluster that does not answer is asked again: it may say so at once.
const retryPause = 200 * time.Millisecond

// byteOf is the place of a key's line in the queue's file.
func byteOf(key string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(key)) // never fails
	return sum.Sum64() >> 1       // the last byte of a file is the largest int64
}
