package stats

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// partLength is the time for one place before the next one's turn.
const partLength = 250 * time.Millisecond

// Parts returns the number and the length of the parts for one figure. Several places take turns, so other
// load on the machine affects all of them.
func Parts(duration time.Duration) (count int, length time.Duration) {
	count = max(1, int(duration/partLength))
	return count, duration / time.Duration(count)
}

// Crew is a set of workers with the same work at the same time. The zero value has none.
type Crew struct {
	workers []func() error
	took    [][]time.Duration // of each worker, in one run
}

// firstSamples is the initial capacity of a worker's samples.
const firstSamples = 1 << 12

// Add adds a worker with its repeated work.
func (c *Crew) Add(once func() error) {
	c.workers = append(c.workers, once)
	c.took = append(c.took, make([]time.Duration, 0, firstSamples))
}

// Run runs each worker once before the time counts, then for about the given time, at least once, and adds
// the times. It ends soon after a worker's error, or after ctx, with the cause.
func (c *Crew) Run(ctx context.Context, length time.Duration, s *Samples) error {
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	failed := make([]error, len(c.workers))
	begin := make(chan struct{})
	var warm, done sync.WaitGroup
	warm.Add(len(c.workers))
	for i, once := range c.workers {
		c.took[i] = c.took[i][:0]
		done.Go(func() {
			failed[i] = once()
			warm.Done()
			<-begin
			if failed[i] == nil {
				failed[i] = c.work(i, length, &stop)
			}
			if failed[i] != nil {
				stop.Store(true)
			}
		})
	}
	warm.Wait()
	began := time.Now()
	close(begin)
	done.Wait()
	s.Elapsed += time.Since(began)
	for _, took := range c.took {
		s.Took = append(s.Took, took...)
	}
	return errors.Join(append(failed, context.Cause(ctx))...)
}

func (c *Crew) work(i int, length time.Duration, stop *atomic.Bool) error {
	began := time.Now()
	for last := began; ; {
		if err := c.workers[i](); err != nil {
			return err
		}
		now := time.Now()
		c.took[i] = append(c.took[i], now.Sub(last))
		last = now
		if now.Sub(began) >= length || stop.Load() {
			return nil
		}
	}
}
