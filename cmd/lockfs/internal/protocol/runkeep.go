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

// keeper watches a lock, and renews one that goes stale by time at each third of its life.
type keeper struct {
	path  string
	every time.Duration // how often it is looked at where nothing tells of changes
	check func(context.Context) error
	renew func(context.Context) error   // nil: there is nothing to renew
	life  func() (time.Duration, error) // how long after it was renewed the lock is stale; 0: never

	lifetime  time.Duration // as life was last seen, first when the lock was taken
	renewedAt time.Duration // when it was last asked to renew the lock, or for the lock, by hostinfo.BootTime
	warned    bool
}

// keep keeps the lock until ctx ends. It answers why the lock is lost if it is: somebody took it away, or it could be
// neither renewed nor read for so long that somebody may have. That it cannot be read is no evidence by itself.
func (k *keeper) keep(ctx context.Context, warn io.Writer) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changed := make(chan struct{}, 1)
	go func() { // for what watches a file may hang with its file system
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

// untilDue is how long until the lock is to be looked at in any case.
func (k *keeper) untilDue() time.Duration {
	if k.lifetime == 0 {
		return math.MaxInt64
	}
	return max(k.dueAt()-hostinfo.BootTime(), min(k.every, max(k.lifetime/10, briefest)))
}

// briefest is between two looks at a lock that should have been renewed and could not be, however short it lives.
const briefest = 20 * time.Millisecond

func (k *keeper) dueAt() time.Duration { return k.renewedAt + k.lifetime/3 }

func (k *keeper) staleAt() time.Duration { return k.renewedAt + k.lifetime }

// look answers why the lock is lost.
func (k *keeper) look(ctx context.Context, warn io.Writer) error {
	renewing := k.lifetime != 0 && hostinfo.BootTime() >= k.dueAt()
	began := hostinfo.BootTime()
	lifetime := k.lifetime // what cannot be told now is as it was
	// there: though the lock may be stale, nobody has taken it.
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
	if there { // and so nobody writes to lifetime any more, as one who hangs still may
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
		fmt.Fprintf(warn, "lockfs: warning: cannot tell whether the lock is still there, or renew it: %v\n", err)
	}
	k.warned = true
	return nil
}

var errHangs = errors.New("the file system of the lock has not answered for so long that the lock may be stale")

// minPatience is for locks that are stale already, but that nobody has taken.
const minPatience = 5 * time.Second

// patiently does not let a file system that hangs keep it for longer than the lock lives.
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
