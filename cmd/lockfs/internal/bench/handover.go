package bench

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// hold is how long a holder keeps the lock after the other side begins to ask for it, so the other side is
// waiting. It does not count.
const hold = 20 * time.Millisecond

// side is one of two contenders for a lock. Both are in this process, so one clock times both.
type side interface {
	// acquire waits for the lock and returns the time of its acquisition.
	acquire() (time.Time, error)
	release() error
	close()
}

// byHandover returns a measurement of a lock that alternates between two sides. A sample lasts from the start
// of a release until the other side has the lock.
func byHandover(newSide func(place, *atomic.Bool) (side, error)) func(context.Context, folder, Plan) ([]time.Duration, time.Duration, error) {
	return func(ctx context.Context, f folder, plan Plan) (took []time.Duration, _ time.Duration, err error) {
		var over atomic.Bool // ends a waiter that polls
		var sides [2]side
		p := f.place("handover")
		defer func() { _ = p.unlink() }()
		for i := range sides {
			if sides[i], err = newSide(p, &over); err != nil {
				return nil, 0, err
			}
			defer sides[i].close()
		}
		if _, err := sides[0].acquire(); err != nil {
			return nil, 0, err
		}
		for began, holder := time.Now(), 0; ; holder = 1 - holder {
			if err := context.Cause(ctx); err != nil {
				return nil, 0, err
			}
			one, err := handOver(sides[holder], sides[1-holder], &over)
			if err != nil {
				return nil, 0, err
			}
			took = append(took, one)
			if time.Since(began) >= plan.Duration {
				return took, 0, nil
			}
		}
	}
}

func handOver(holder, waiter side, over *atomic.Bool) (time.Duration, error) {
	type grant struct {
		at  time.Time
		err error
	}
	granted := make(chan grant, 1)
	go func() {
		at, err := waiter.acquire()
		granted <- grant{at, err}
	}()
	select {
	case g := <-granted:
		if g.err == nil {
			g.err = errNotExclusive
		}
		return 0, g.err
	case <-time.After(hold):
	}
	released := time.Now()
	if err := holder.release(); err != nil {
		over.Store(true)
		holder.close() // no descriptor is closed while the waiter uses it, and a closed one has no lock
		<-granted
		return 0, err
	}
	g := <-granted
	if g.err == nil && g.at.Before(released) {
		g.err = errNotExclusive
	}
	return g.at.Sub(released), g.err
}

// flocker locks by flock(2), through its own descriptor.
type flocker struct {
	place
	fd int
}

func newFlocker(p place, _ *atomic.Bool) (side, error) {
	fd, err := p.open(unix.O_CREAT | unix.O_RDWR)
	return &flocker{p, fd}, err
}

func (f *flocker) acquire() (time.Time, error) {
	err := f.lock(f.fd)
	return time.Now(), err
}

func (f *flocker) release() error { return f.unlock(f.fd) }

func (f *flocker) close() {
	if f.fd >= 0 {
		_ = unix.Close(f.fd)
	}
	f.fd = -1
}

// creator locks by exclusive creation. It retries without a pause.
type creator struct {
	place
	over *atomic.Bool
}

func newCreator(p place, over *atomic.Bool) (side, error) { return &creator{p, over}, nil }

func (c *creator) acquire() (time.Time, error) {
	for {
		fd, err := c.create()
		at := time.Now()
		switch {
		case err == nil:
			return at, c.failed("close", unix.Close(fd))
		case !errors.Is(err, os.ErrExist) || c.over.Load():
			return at, err
		}
	}
}

func (c *creator) release() error { return c.unlink() }
func (c *creator) close()         {}
