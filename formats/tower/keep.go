package tower

import (
	"context"
	"errors"
	"time"

	"lockfs/formats/internal/lockfile"
)

// Keep renews a request's lock at each interval, which is at most a third of its ttl (section 5.2),
// until ctx ends: then it gives nil, and no heartbeat is under way any more. renewed is before the lock
// was asked for, or last to be renewed, by time.Now: its life may be counted from then. failed is told of
// each failure and how many there were in a row; they do not end it (section 5.4).
//
// A [LostError] ends it: another lock or another file is there, or none, or the lock could be neither renewed nor read
// for longer than its ttl, so that another request may have stolen it. Keep notices the first three without a
// heartbeat: it looks at the lock when the system reports a change, and now and then.
func (d Dir) Keep(ctx context.Context, l *Lock, renewed time.Time, every time.Duration, failed func(failures int, err error)) error {
	return d.KeepFile(ctx, l, renewed, every, failed, new(LockFile))
}

// KeepFile is [Dir.Keep], and tells in which file the lock was last seen.
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
		// Whichever is over first, as the clock of the lock's times may be set back.
		life := min(l.safeUntil().Sub(d.Now()), l.ttl()-began.Sub(renewed))
		current, err := d.patiently(l, life, seen(act))
		var lost *LostError
		switch {
		case errors.As(err, &lost):
			return err
		case !beats: // what is wrong with the lock is the next heartbeat's to tell
		case err == nil:
			failures, l, renewed = 0, current, began
		default:
			failures++
			failed(failures, err)
		}
	}
}

// lookInterval counts only where nothing tells that the lock has changed.
const lookInterval = time.Second

// changes tells that the lock may have changed, until ctx ends. It does not look at the lock itself: a mount of lockfs
// would take that for the look of whoever is about to replace it.
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

// Own gives the lock of a request. A [LostError] says that the request does not have it.
func (d Dir) Own(lockName, requestID string) (*Lock, error) {
	return d.ownIn(lockName, requestID, new(LockFile))
}

// ownIn is Own, and notes the file.
func (d Dir) ownIn(lockName, requestID string, file *LockFile) (*Lock, error) {
	l, _, info, err := d.own(lockName, requestID)
	if err == nil {
		file.Note(info)
	}
	return l, err
}

// minPatience is for locks that are stale already, but that nobody has taken.
const minPatience = 5 * time.Second

var errHangs = errors.New("the file system does not answer")

// patiently is a heartbeat or a look that a file system which hangs does not keep for longer than the lock has to live.
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

// unseen makes of a failure that the lock is lost, unless it can still be read.
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
