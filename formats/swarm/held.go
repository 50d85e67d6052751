package swarm

import (
	"context"
	"errors"
	"time"

	"lockfs/formats/internal/lockfile"
)

// Held is a lock acquired for a worker. Further methods:
//
//	Release(context.Context) error // removes the file; a LostError if it is not this lock any more
//	Check(context.Context) error   // nil: it is there; a LostError: it is not; any other error is no evidence
//	Token() string                 // the fencing token; empty anywhere but on a mount of lockfs
//	Path() string                  // absolute
//	Close()                        // forgets the lock, which stays
type Held struct {
	*lockfile.Held
	Lock *Lock
}

// LostError means that the lock was removed, replaced or overwritten by another program.
type LostError = lockfile.LostError

// pollInterval is unused if the file system reports changes.
const pollInterval = 100 * time.Millisecond

// Hold calls Acquire, at least once, until it succeeds or ctx ends. Then the error is the last reason.
func (d Dir) Hold(ctx context.Context, taskID, worker string, ttl time.Duration) (*Held, error) {
	if err := ValidateTaskID(taskID); err != nil {
		return nil, err
	}
	var lock *Lock
	var last error
	_ = lockfile.Wait(ctx, d.file(taskID), pollInterval, func() (expires time.Time, again bool) {
		lock, last = d.Acquire(context.WithoutCancel(ctx), taskID, worker, ttl)
		var held *HeldError
		if errors.As(last, &held) && held.Entry.Lock != nil && !held.Entry.Lock.ExpiresAt.IsZero() {
			expires = held.Entry.Lock.expiry()
		}
		return lockfile.StaleAt(d.file(taskID), expires), held != nil || errors.Is(last, ErrChanged)
	})
	if last != nil {
		return nil, last
	}
	content, err := lock.Render()
	if err != nil {
		return nil, err
	}
	held, err := lockfile.Hold(ctx, d.file(taskID), content)
	if err != nil {
		return nil, err
	}
	return &Held{held, lock}, nil
}

// Extend sets the expiry to ttl from now. A [LostError] means that the lock is gone; any other error proves
// nothing.
func (h *Held) Extend(ctx context.Context, ttl time.Duration) error {
	extended, err := New(h.Lock.TaskID, h.Lock.Worker, ttl, time.Now())
	if err != nil {
		return err
	}
	extended.AcquiredAt = h.Lock.AcquiredAt
	content, err := extended.Render()
	if err == nil {
		err = h.Rewrite(ctx, content)
	}
	if err == nil {
		h.Lock = extended
	}
	return err
}
