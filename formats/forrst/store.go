package forrst

import (
	"context"
	"errors"
	"time"
)

// Errors of a [Store]. Any other says that the store cannot be asked, and nothing of what it did.
var (
	// ErrHeld: somebody has the lock, after all the time that the request waits.
	ErrHeld = errors.New("the lock is held")
	// ErrNotFound: there is no such lock.
	ErrNotFound = errors.New("no such lock")
	// ErrNotOwner: the lock has another owner.
	ErrNotOwner = errors.New("the lock has another owner")
	// ErrReleased: the lock is not there any more, and its owner has released it before.
	ErrReleased = errors.New("the lock was released before")
)

// Store keeps locks, and what requests were answered. Several guards, in several processes, may share one.
// [Guard] relies on this:
//
//   - Of all the locks of a key, one is held at a time, until it is released or has expired.
//   - A method that returned without error has done it for all who use the store; one whose ctx ended may
//     or may not have, but Acquire leaves no lock behind.
//   - An answer that was recorded before a lock is dropped is found by whoever acquires the lock after.
//   - Release and ForceRelease that are asked again by the same request succeed again.
type Store interface {
	// Acquire takes a lock, or finds that the request was answered before. Those who wait for a key get it
	// in the order in which they came. A lock that is held by an earlier attempt of the same request is
	// waited for in any case, until ctx ends. The error is ErrHeld if somebody else has it for too long.
	Acquire(ctx context.Context, want Want) (*Grant, error)
	// Record keeps the answer to the request that has a lock, for later attempts of it: at least until the
	// lock has expired.
	Record(ctx context.Context, grant *Grant, answer []byte) error
	// Drop ends a lock. One that is not there any more is no error, and another one of the key stays.
	Drop(ctx context.Context, grant *Grant) error
	// Release ends an owner's lock: ErrNotFound, ErrNotOwner or ErrReleased.
	Release(ctx context.Context, key, owner string, by Identity) error
	// ForceRelease ends anybody's lock: ErrNotFound.
	ForceRelease(ctx context.Context, key string, by Identity) error
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
}

// Grant is what a request got.
type Grant struct {
	Request Identity
	Lock    *Lock
	Token   uint64 // larger than those of all earlier holders of the key; 0 if the store has none
	Answer  []byte // not nil: the request was answered before, and there is no lock
}

// MaxAnswer is the size up to which a store has to be able to record an answer, in bytes.
const MaxAnswer = 256 << 10
