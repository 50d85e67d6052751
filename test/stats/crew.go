package stats

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// partLength is for how long one place is measured before it is the next one's turn.
const partLength = 250 * time.Millisecond

// Parts is how many parts of what length the time for one figure is measured in. Several places take turns with their
// parts, so that whatever else the machine does hits all of them alike.
func Parts(duration time.Duration) (count int, length time.Duration) {
	count = max(1, int(duration/partLength))
	return count, duration / time.Duration(count)
}

// Crew is workers that do the same at the same time. The zero value has none.
type Crew struct {
	workers []func() error
	took    [][]time.Duration // of each worker, in one run
}

// firstSamples is how many a worker has room for before Go has to look for more.
const firstSamples = 1 << 12

// Add adds a worker, by what it does again and again.
func (c *Crew) Add(once func() error) {
	c.workers = append(c.workers, once)
	c.took = append(c.took, make([]time.Duration, 0, firstSamples))
}

// Run lets each worker do it once before the time counts, and then for about a time, at least once, and adds what that took.
// It ends soon after a worker has failed, with its error, or ctx is done, with the cause.
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
