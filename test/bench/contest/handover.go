package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/test/stats"
)

// hold is the time for which a holder keeps the lock after the other side began to wait. It is not counted.
const hold = 20 * time.Millisecond

// side is one of two contenders for a lock. Both are in this process, so one clock measures both.
type side interface {
	// acquire waits for the lock and returns the time of the acquisition.
	acquire() (time.Time, error)
	release() error
	close()
}

// handover is a lock that moves between two sides.
type handover struct {
	folders []folder
	names   []string // of the file, for each side
	sides   [2]side
	holder  int // the side with the lock, after the begin
	begun   bool

	waiting sync.WaitGroup
	over    atomic.Bool // ends a wait by polling
}

var _ trial = (*handover)(nil)

// run measures from the begin of a release to the acquisition by the other side.
func (h *handover) run(ctx context.Context, length time.Duration, s *stats.Samples) error {
	for began := time.Now(); ; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !h.begun {
			if _, err := h.sides[h.holder].acquire(); err != nil {
				return err
			}
			h.begun = true
		}
		took, err := h.pass()
		if err != nil {
			return err
		}
		s.Took = append(s.Took, took)
		if time.Since(began) >= length {
			return nil
		}
	}
}

func (h *handover) pass() (time.Duration, error) {
	type grant struct {
		at  time.Time
		err error
	}
	granted := make(chan grant, 1)
	waiter := h.sides[1-h.holder]
	h.waiting.Go(func() {
		at, err := waiter.acquire()
		granted <- grant{at, err}
	})
	select {
	case g := <-granted:
		if g.err == nil {
			g.err = errNotExclusive
		}
		return 0, g.err
	case <-time.After(hold):
	}
	released := time.Now()
	if err := h.sides[h.holder].release(); err != nil {
		return 0, err
	}
	g := <-granted
	if g.err == nil && g.at.Before(released) {
		g.err = errNotExclusive
	}
	h.holder = 1 - h.holder
	return g.at.Sub(released), g.err
}

// close waits for the waiting side after an error, because a used descriptor must not be closed.
func (h *handover) close() {
	h.over.Store(true)
	for _, s := range []side{h.sides[h.holder], h.sides[1-h.holder]} {
		if s != nil {
			s.close()
		}
		h.waiting.Wait()
	}
	for _, f := range h.folders {
		f.close()
	}
	for _, name := range h.names {
		_ = os.Remove(name)
	}
}

// handoverOf returns a measurement of two sides, each with its own path to the same file.
func handoverOf(newSide func(place, *atomic.Bool) (side, error)) func(context.Context, target, *Plan) (trial, error) {
	return func(_ context.Context, t target, _ *Plan) (trial, error) {
		h := new(handover)
		for i, path := range t.paths {
			f, err := openFolder(path)
			if err != nil {
				return h, err
			}
			h.folders = append(h.folders, f)
			p := f.place("lock")
			h.names = append(h.names, p.path)
			if h.sides[i], err = newSide(p, &h.over); err != nil {
				return h, err
			}
		}
		return h, nil
	}
}

// flocker locks by flock(2) through its own descriptor.
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
func (f *flocker) close()         { _ = unix.Close(f.fd) }

// creator locks by exclusive creation, repeated without a pause.
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
