package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// trial is a measurement in one target.
type trial interface {
	// run goes on for about a time, at least until there is one sample, and adds what it measured.
	run(ctx context.Context, length time.Duration, s *samples) error
	close()
}

// crew is workers that do the same at the same time, each on a name of its own.
type crew struct {
	folders []folder
	jobs    []job
	took    [][]time.Duration // of each worker, in one run
}

var _ trial = (*crew)(nil)

// firstSamples is how many a worker has room for before Go has to look for more.
const firstSamples = 1 << 12

// crewOf makes a measurement of a job. Its workers are spread over the paths of a target.
func crewOf(start func(place) (job, error)) func(context.Context, target, *Plan) (trial, error) {
	return func(ctx context.Context, t target, p *Plan) (trial, error) {
		c := new(crew)
		folders := len(t.paths)
		if p.OwnDirs {
			folders = p.Workers
		}
		for i := range folders {
			f, err := makeFolder(t.paths[i%len(t.paths)])
			if err != nil {
				return c, err
			}
			c.folders = append(c.folders, f)
		}
		for i := range p.Workers {
			if err := context.Cause(ctx); err != nil {
				return c, err
			}
			j, err := start(c.folders[i%len(c.folders)].place(fmt.Sprint("lock", i)))
			if err != nil {
				return c, err
			}
			c.jobs = append(c.jobs, j)
			c.took = append(c.took, make([]time.Duration, 0, firstSamples))
		}
		return c, nil
	}
}

// inOneDir is for workers that do not change their directory.
func inOneDir(prepare func(context.Context, target, *Plan) (trial, error)) func(context.Context, target, *Plan) (trial, error) {
	return func(ctx context.Context, t target, p *Plan) (trial, error) {
		shared := *p
		shared.OwnDirs = false
		return prepare(ctx, t, &shared)
	}
}

// run lets each worker do its job once before the time counts.
func (c *crew) run(ctx context.Context, length time.Duration, s *samples) error {
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	failed := make([]error, len(c.jobs))
	begin := make(chan struct{})
	var warm, done sync.WaitGroup
	warm.Add(len(c.jobs))
	for i := range c.jobs {
		c.took[i] = c.took[i][:0]
		done.Go(func() {
			failed[i] = c.jobs[i].once()
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
	s.elapsed += time.Since(began)
	for _, took := range c.took {
		s.took = append(s.took, took...)
	}
	return errors.Join(append(failed, context.Cause(ctx))...)
}

func (c *crew) work(i int, length time.Duration, stop *atomic.Bool) error {
	began := time.Now()
	for last := began; ; {
		if err := c.jobs[i].once(); err != nil {
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

// close removes what the workers need. What cannot be removed is reported when the whole space is.
func (c *crew) close() {
	for _, j := range c.jobs {
		if j.end != nil {
			j.end()
		}
	}
	for _, f := range c.folders {
		f.close()
		_ = os.RemoveAll(f.path)
	}
}
