package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats"
	"lockfs/raftstore/hostinfo"
)

// keeper watches a lock. It renews a lock that becomes stale by time at each third of its life.
type keeper struct {
	path  string
	every time.Duration // how often to check it where nothing reports changes
	check func(context.Context) error
	renew func(context.Context) error   // nil: there is nothing to renew
	life  func() (time.Duration, error) // how long after a renewal the lock is stale; 0: never

	lifetime  time.Duration // last result of life, at first from the acquisition
	renewedAt time.Duration // time of the last request for the lock or its renewal, by hostinfo.BootTime
	warned    bool
}

// keep keeps the lock until ctx ends. It returns an error if the lock is lost: another program removed it, or
// it could be neither renewed nor read for its whole life. A lock that cannot be read is not lost by this
// alone.
func (k *keeper) keep(ctx context.Context, warn io.Writer) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changed := make(chan struct{}, 1)
	go func() { // the watch may hang with its file system
		_ = formats.Watch(watching, k.path, k.every, func() (time.Time, bool) {
			select {
			case changed <- struct{}{}:
			default:
			}
			return time.Time{}, true
		})
	}()
	for ctx.Err() == nil {
		if lost := k.look(ctx, warn); lost != nil {
			return lost
		}
		due := time.NewTimer(k.untilDue())
		select {
		case <-ctx.Done():
		case <-changed:
		case <-due.C:
		}
		due.Stop()
	}
	return nil
}

// untilDue returns how long to wait for a change before the next check.
func (k *keeper) untilDue() time.Duration {
	if k.lifetime == 0 {
		return math.MaxInt64
	}
	return max(k.dueAt()-hostinfo.BootTime(), min(k.every, max(k.lifetime/10, briefest)))
}

// briefest is the shortest interval between two checks of a lock after a failed renewal.
const briefest = 20 * time.Millisecond

func (k *keeper) dueAt() time.Duration { return k.renewedAt + k.lifetime/3 }

func (k *keeper) staleAt() time.Duration { return k.renewedAt + k.lifetime }

// look checks the lock, and renews it when due. It returns an error if the lock is lost.
func (k *keeper) look(ctx context.Context, warn io.Writer) error {
	renewing := k.lifetime != 0 && hostinfo.BootTime() >= k.dueAt()
	began := hostinfo.BootTime()
	lifetime := k.lifetime // stays if life fails
	// there: the lock exists, perhaps stale, and no other program has acquired it.
	there, err := k.patiently(func() (there bool, err error) {
		if renewing {
			err = k.renew(ctx)
			there = err == nil || !cli.IsLost(err) && k.check(ctx) == nil
		} else {
			err = k.check(ctx)
			there = err == nil
		}
		if !there {
			return false, err
		}
		if life, err := k.life(); err == nil {
			lifetime = life
		}
		return true, err
	})
	if there { // otherwise a hanging call may still write to lifetime
		k.lifetime = lifetime
	}
	switch {
	case err == nil:
		k.warned = false
		if renewing {
			k.renewedAt = began
		}
		return nil
	case cli.IsLost(err) || errors.Is(err, errHangs):
		return err
	case ctx.Err() != nil:
		return nil
	case !there && k.lifetime != 0 && hostinfo.BootTime() > k.staleAt():
		return fmt.Errorf("%s could not be renewed for %v, after which it is stale, and cannot be read: %w",
			cli.Word(k.path), k.lifetime, err)
	}
	if !k.warned {
		fmt.Fprintf(warn, "lockfs: warning: the lock can be neither read nor renewed: %v\n", err)
	}
	k.warned = true
	return nil
}

var errHangs = errors.New("the file system of the lock has not answered for so long that the lock may be stale")

// minPatience is the time limit of calls for a lock that is stale but still there.
const minPatience = 5 * time.Second

// patiently stops waiting for a hanging file system when the lock is stale.
func (k *keeper) patiently(do func() (bool, error)) (there bool, err error) {
	type result struct {
		there bool
		err   error
	}
	done := make(chan result, 1)
	go func() {
		there, err := do()
		done <- result{there, err}
	}()
	var over <-chan time.Time
	if k.lifetime != 0 {
		patience := k.staleAt() - hostinfo.BootTime()
		if patience <= 0 {
			patience = minPatience
		}
		timer := time.NewTimer(patience)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case r := <-done:
		return r.there, r.err
	case <-over:
		return false, errHangs
	}
}
