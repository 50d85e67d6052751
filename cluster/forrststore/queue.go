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

// standInLine waits until this request is first in the line for a key, or returns the reason for the end of
// the wait. If this server's session expires, the request moves to the end of the line.
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

// leave releases the place for the next request: while this server lives, nothing else releases it.
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

const retryPause = 200 * time.Millisecond

// byteOf returns the byte of a key's line in the queue file.
func byteOf(key string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(key)) // never fails
	return sum.Sum64() >> 1       // the last possible byte is the largest int64
}
