package forrst

import (
	"context"
	"errors"
	"time"
)

// Errors of a [Store]. Any other says that the store cannot be asked: it may have done the request or not.
var (
	// ErrHeld: somebody has the lock, after all the time that the request waits.
	ErrHeld = errors.New("the lock is held")
	// ErrNotFound: there is no such lock.
	ErrNotFound = errors.New("no such lock")
	// ErrNotOwner: the lock has another owner.
	ErrNotOwner = errors.New("the lock has another owner")
	// ErrRefused: the store did not do it, and will not if it is asked again, for instance for lack of room.
	ErrRefused = errors.New("the store refuses")
	// ErrReleased: the lock is not there any more, and its owner has released it before.
	ErrReleased = errors.New("the lock was released before")
)

// Store keeps locks, and what requests were answered. Several runners, in several processes, may share one.
// [Runner] relies on this:
//
//   - Of all the locks of a key, one is held at a time, until it is released or has expired.
//   - A method that returned without error has done it for all who use the store; one whose ctx ended may
//     or may not have, but Acquire leaves no lock behind.
//   - An answer that was recorded before a lock is dropped is found by whoever acquires the lock after.
//   - What is done for a lock, or recorded under it, never counts for a later lock of the same key, owner and request.
type Store interface {
	// Acquire takes a lock, or if want.Once finds what an earlier attempt of the request was answered. Those who
	// wait for a key get it in the order in which they came. The error is ErrHeld if somebody has it for too long.
	Acquire(ctx context.Context, want Want) (*Grant, error)
	// Record keeps the answer to the request that has a lock, for later attempts of it. The store may drop the answer after
	// the time keep, but not within a minute: other attempts may be waiting for it.
	Record(ctx context.Context, grant *Grant, answer []byte, keep time.Duration) error
	// Drop ends a lock. One that is not there any more is no error, and another one of the key stays.
	Drop(ctx context.Context, grant *Grant) error
	// Release ends an owner's lock: ErrNotFound, ErrNotOwner or ErrReleased. It succeeds again if the same request
	// did it within some time before.
	Release(ctx context.Context, key, owner string, by Identity, within time.Duration) (again bool, err error)
	// ForceRelease ends anybody's lock: ErrNotFound. It succeeds again like Release.
	ForceRelease(ctx context.Context, key string, by Identity, within time.Duration) (again bool, err error)
	// Lock answers the lock of a key, nil if there is none.
	Lock(ctx context.Context, key string) (*Lock, error)
	// Now is the time by which locks expire, and rather ahead of it than behind.
	Now() time.Time
}

// Want is a lock that a request asks for.
type Want struct {
	Key     string // the full key
	Owner   string
	TTL     time.Duration
	Wait    time.Duration // how long to wait while somebody has it
	Request Identity

	// Once: another attempt of the same request counts. While one that has the lock is not answered it is waited for,
	// until ctx ends, and its answer is this one's. So is one that was recorded before, as long as the lock that it
	// was recorded under is held, and for the time Within after it was recorded.
	Once   bool
	Within time.Duration
}

// Grant is what a request got.
type Grant struct {
	Request Identity
	Lock    *Lock
	Token   uint64 // larger than those of all earlier holders of the key; 0 if the store has none
	Answer  []byte // not nil: what another attempt of the request was answered; there is no lock for this one
}

// MaxAnswer is the size up to which a store has to be able to record an answer, in bytes.
const MaxAnswer = 255 << 10
