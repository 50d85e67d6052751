package tower

import (
	"context"
	"errors"
	"time"

	"lockfs/formats/internal/lockfile"
)

// Keep renews a request's lock at each interval, at most a third of its ttl (section 5.2). When ctx ends,
// Keep returns nil, with no heartbeat in progress. renewed is a time before the acquisition, or before the
// last renewal, by time.Now: Keep counts the lock's life from it. Keep calls failed after each failure with
// the number of failures in a row, and continues (section 5.4).
//
// Keep ends with a [LostError] if the file is missing, or has another lock or another inode. It also does if
// it could neither renew nor read the lock for longer than its ttl, because another request may have stolen
// it. Keep notices the first three between heartbeats: it reads the lock when the system reports a change,
// and periodically.
func (d Dir) Keep(ctx context.Context, l *Lock, renewed time.Time, every time.Duration, failed func(failures int, err error)) error {
	return d.KeepFile(ctx, l, renewed, every, failed, new(LockFile))
}

// KeepFile is [Dir.Keep], and records the file of the lock.
func (d Dir) KeepFile(
	ctx context.Context, l *Lock, renewed time.Time, every time.Duration, failed func(failures int, err error), file *LockFile,
) error {
	path := d.LockPath(l.LockName)
	seen := func(act func(string, string, *LockFile) (*Lock, error)) func(lockName, requestID string) (*Lock, error) {
		return func(lockName, requestID string) (*Lock, error) {
			current, err := act(lockName, requestID, file)
			return current, file.lost(path, l, err)
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changed := d.changes(ctx, l.LockName)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for failures := 0; ; {
		act, beats := d.ownIn, false
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-ticker.C:
			act, beats = d.HeartbeatFile, true
		}
		began := time.Now()
		// The earlier end counts, because the clock of the lock's times may be set back.
		life := min(l.safeUntil().Sub(d.Now()), l.ttl()-began.Sub(renewed))
		current, err := d.patiently(l, life, seen(act))
		var lost *LostError
		switch {
		case errors.As(err, &lost):
			return err
		case !beats: // the next heartbeat reports it
		case err == nil:
			failures, l, renewed = 0, current, began
		default:
			failures++
			failed(failures, err)
		}
	}
}

// lookInterval is unused if the file system reports changes.
const lookInterval = time.Second

// changes sends when the lock may have changed, until ctx ends. It does not read the lock: a lockfs mount
// would take that for a look before a replacement.
func (d Dir) changes(ctx context.Context, lockName string) <-chan struct{} {
	changed := make(chan struct{}, 1)
	go func() {
		_ = lockfile.Wait(ctx, d.LockPath(lockName), lookInterval, func() (time.Time, bool) {
			select {
			case changed <- struct{}{}:
			default:
			}
			return time.Time{}, true
		})
	}()
	return changed
}

// Own returns the lock of a request. A [LostError] means that the request does not hold it.
func (d Dir) Own(lockName, requestID string) (*Lock, error) {
	return d.ownIn(lockName, requestID, new(LockFile))
}

// ownIn is Own, and records the file.
func (d Dir) ownIn(lockName, requestID string, file *LockFile) (*Lock, error) {
	l, _, info, err := d.own(lockName, requestID)
	if err == nil {
		file.Note(info)
	}
	return l, err
}

// minPatience is the limit for a lock already stale but not stolen.
const minPatience = 5 * time.Second

var errHangs = errors.New("the file system does not answer")

// patiently limits a heartbeat or a look on a hanging file system to the life of the lock.
func (d Dir) patiently(l *Lock, life time.Duration, act func(lockName, requestID string) (*Lock, error)) (*Lock, error) {
	type result struct {
		lock *Lock
		err  error
	}
	done := make(chan result, 1)
	began := time.Now()
	go func() {
		current, err := act(l.LockName, l.RequestID)
		if err != nil && time.Since(began) > life {
			err = d.unseen(err, l)
		}
		done <- result{current, err}
	}()
	patience := life
	if patience <= 0 {
		patience = minPatience
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	select {
	case r := <-done:
		return r.lock, r.err
	case <-over.C:
		return nil, &LostError{LockName: l.LockName, RequestID: l.RequestID, Err: errHangs}
	}
}

// unseen turns a failure into a [LostError], unless the lock can still be read.
func (d Dir) unseen(err error, l *Lock) error {
	var lost *LostError
	if errors.As(err, &lost) {
		return err
	}
	if _, _, _, unread := d.own(l.LockName, l.RequestID); unread == nil {
		return err
	}
	return &LostError{LockName: l.LockName, RequestID: l.RequestID, Err: err}
}
