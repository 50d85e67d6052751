package tower

import (
	"context"
	"errors"
	"time"
)

// Keep renews a request's lock at each interval, which is at most a third of its ttl (section 5.2),
// until ctx ends: then it gives nil, and no heartbeat is under way any more. failed is told of each
// failure and how many there were in a row; they do not end it (section 5.4).
//
// A [LostError] ends it: another lock is there, or none, or the lock could be neither renewed nor read
// for longer than its ttl, so that somebody may have stolen it.
func (d Dir) Keep(ctx context.Context, l *Lock, every time.Duration, failed func(failures int, err error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		renewed, err := d.beat(l)
		var lost *LostError
		switch {
		case err == nil:
			failures, l = 0, renewed
		case errors.As(err, &lost):
			return err
		default:
			failures++
			failed(failures, err)
		}
	}
}

// minPatience is for locks that are stale already.
const minPatience = 5 * time.Second

var errHangs = errors.New("the file system does not answer")

// beat is a heartbeat that a file system which hangs does not keep for ever.
func (d Dir) beat(l *Lock) (*Lock, error) {
	type result struct {
		lock *Lock
		err  error
	}
	done := make(chan result, 1)
	go func() {
		renewed, err := d.Heartbeat(l.LockName, l.RequestID)
		if err != nil && l.Stale(d.Now()) {
			err = d.unseen(err, l)
		}
		done <- result{renewed, err}
	}()
	patience := time.NewTimer(max(minPatience, l.StaleSince().Sub(d.Now())))
	defer patience.Stop()
	select {
	case r := <-done:
		return r.lock, r.err
	case <-patience.C:
		return nil, &LostError{LockName: l.LockName, RequestID: l.RequestID, Err: errHangs}
	}
}

// unseen makes of a failure that the lock is lost, unless it can still be read.
func (d Dir) unseen(err error, l *Lock) error {
	var lost *LostError
	if errors.As(err, &lost) {
		return err
	}
	if _, _, unread := d.own(l.LockName, l.RequestID); unread == nil {
		return err
	}
	return &LostError{LockName: l.LockName, RequestID: l.RequestID, Err: err}
}
