package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// job is the repeated work of one worker.
type job struct {
	once func() error
	end  func() // after the last repetition; nil: nothing
}

// byWorkers returns a measurement of a job. Each worker does it once untimed, then at least once, until the
// time is over. After a failure all workers end soon.
func byWorkers(start func(place) (job, error)) func(context.Context, folder, Plan) ([]time.Duration, time.Duration, error) {
	return func(ctx context.Context, f folder, plan Plan) (all []time.Duration, elapsed time.Duration, err error) {
		jobs := make([]job, 0, plan.Workers)
		defer func() {
			for _, j := range jobs {
				if j.end != nil {
					j.end()
				}
			}
		}()
		for i := range plan.Workers {
			if err := context.Cause(ctx); err != nil {
				return nil, 0, err
			}
			j, err := start(f.place(fmt.Sprint("lock", i)))
			if err != nil {
				return nil, 0, err
			}
			jobs = append(jobs, j)
		}
		var stop atomic.Bool
		defer context.AfterFunc(ctx, func() { stop.Store(true) })()
		failed, took := make([]error, len(jobs)), make([][]time.Duration, len(jobs))
		begin := make(chan struct{})
		var warm, done sync.WaitGroup
		warm.Add(len(jobs))
		for i, j := range jobs {
			done.Go(func() {
				failed[i] = j.once()
				warm.Done()
				<-begin
				if failed[i] == nil {
					took[i], failed[i] = repeat(j.once, plan.Duration, &stop)
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
		elapsed = time.Since(began)
		for _, each := range took {
			all = append(all, each...)
		}
		return all, elapsed, errors.Join(append(failed, context.Cause(ctx))...)
	}
}

func repeat(once func() error, length time.Duration, stop *atomic.Bool) (took []time.Duration, err error) {
	began := time.Now()
	for last := began; ; {
		if err := once(); err != nil {
			return nil, err
		}
		now := time.Now()
		took = append(took, now.Sub(last))
		last = now
		if now.Sub(began) >= length || stop.Load() {
			return took, nil
		}
	}
}
