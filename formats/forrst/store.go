package forrst

import (
	"context"
	"errors"
	"time"
)

// Errors of a [Store]. Any other error means that the store did not answer; the request may have been done.
var (
	// ErrHeld: the lock was held longer than the request waits.
	ErrHeld = errors.New("the lock is held")
	// ErrNotFound: there is no such lock.
	ErrNotFound = errors.New("no such lock")
	// ErrNotOwner: the lock has another owner.
	ErrNotOwner = errors.New("the lock has another owner")
	// ErrRefused: the store did not do it and would refuse again, for instance for lack of room.
	ErrRefused = errors.New("the store refuses")
	// ErrReleased: the lock is gone, released before by its owner.
	ErrReleased = errors.New("the lock was released before")
)

// Store keeps locks and the answers to requests. Several runners, in several processes, may share one. A
// [Runner] relies on these properties:
//
//   - A key has at most one held lock, until it is released or has expired.
//   - The effect of a method that returned without error is visible to all users of the store. If its ctx
//     ended, the effect is unknown, but Acquire leaves no lock behind.
//   - After Record and then Drop of a lock, the next Acquire finds the recorded answer.
//   - Changes and records of a lock never count for a later lock of the same key, owner and request.
type Store interface {
	// Acquire acquires a lock. If want.Once is set, it may return the answer of an earlier attempt instead.
	// Waiting requests for a key get it in their order. The error is ErrHeld if the lock is held for too
	// long.
	Acquire(ctx context.Context, want Want) (*Grant, error)
	// Record keeps the answer to the request of a lock for later attempts. The store may drop the answer
	// after the time keep, but not within a minute, because other attempts may wait for it.
	Record(ctx context.Context, grant *Grant, answer []byte, keep time.Duration) error
	// Drop ends a lock. A missing lock is no error, and another lock of the key stays.
	Drop(ctx context.Context, grant *Grant) error
	// Release ends an owner's lock; errors are ErrNotFound, ErrNotOwner and ErrReleased. It succeeds again if
	// the same request succeeded within the given time before.
	Release(ctx context.Context, key, owner string, by Identity, within time.Duration) (again bool, err error)
	// ForceRelease ends the lock of any owner; the error is ErrNotFound. It succeeds again like Release.
	ForceRelease(ctx context.Context, key string, by Identity, within time.Duration) (again bool, err error)
	// Lock returns the lock of a key; nil if there is none.
	Lock(ctx context.Context, key string) (*Lock, error)
	// Now returns the time by which locks expire. It may be ahead of that, but not behind.
	Now() time.Time
}

// Want is a request for a lock.
type Want struct {
	Key     string // the full key
	Owner   string
	TTL     time.Duration
	Wait    time.Duration // time to wait for a held lock
	Request Identity

	// Once: other attempts of the same request count. While another attempt with the lock has no answer, this
	// one waits for it, until ctx ends, and gets its answer. It also gets an answer recorded before, while
	// the lock of that answer is held, and for the time Within after the record.
	Once   bool
	Within time.Duration
}

// Grant is the result of Acquire.
type Grant struct {
	Request Identity
	Lock    *Lock
	Token   uint64 // larger than those of earlier holders of the key; 0 if the store has none
	Answer  []byte // not nil: the answer to another attempt of the request; then this one has no lock
}

// MaxAnswer is the largest answer a store must be able to record, in bytes.
const MaxAnswer = 255 << 10
