// Package bench measures the speed of locks in a directory of any file system.
//
// It makes the system calls of a program with lock files, and knows nothing of lockfs. All load is in one
// fresh directory below the measured one; [Run] removes it. test/bench compares file systems.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Run takes the measurements of a plan. When ctx ends, it returns soon, with the cause.
func Run(ctx context.Context, plan Plan) (report *Report, err error) {
	chosen, err := plan.choose()
	if err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(plan.Dir, "lockfs-bench-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if failed := os.RemoveAll(path); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s is left behind: %w", path, failed))
		}
	}()
	f, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	defer quietRuntime(plan.Workers)()
	report = &Report{Directory: plan.Dir, Cores: runtime.NumCPU(), Workers: plan.Workers, Seconds: plan.Duration.Seconds()}
	for i, m := range chosen {
		plan.Progress(m.name, i+1, len(chosen))
		runtime.GC()
		took, elapsed, err := m.measure(ctx, f, plan)
		switch {
		case isAnswer(err):
			report.Results = append(report.Results, Result{Measurement: m.name, Error: err.Error()})
		case err != nil:
			return nil, fmt.Errorf("%s in %s: %w", m.name, plan.Dir, err)
		default:
			report.Results = append(report.Results, resultOf(m.name, took, elapsed))
		}
	}
	return report, nil
}

func (p *Plan) choose() (chosen []measurement, err error) {
	switch {
	case p.Workers < 1 || p.Workers > MaxWorkers:
		return nil, fmt.Errorf("%d workers: give 1 to %d", p.Workers, MaxWorkers)
	case p.Duration <= 0 || p.Duration > MaxDuration:
		return nil, fmt.Errorf("a duration of %v: give more than 0 and at most %v", p.Duration, MaxDuration)
	case len(p.Only) == 0:
		return all, nil
	}
	for _, name := range p.Only {
		i := slices.IndexFunc(all, func(m measurement) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no measurement %q, but %s", name, strings.Join(names(), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// quietRuntime reduces the effect of the Go runtime on the figures until undo is called. A thread in a system
// call keeps its processor of the runtime for a while, so each worker gets one.
func quietRuntime(workers int) (undo func()) {
	processors := runtime.GOMAXPROCS(runtime.NumCPU() + workers)
	percent := debug.SetGCPercent(-1) // garbage is collected between measurements
	return func() {
		runtime.GOMAXPROCS(processors)
		debug.SetGCPercent(percent)
	}
}

// isAnswer reports whether an error is a result: the file system cannot do the measured operation, or does it
// wrong.
func isAnswer(err error) bool {
	return errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, errNotExclusive)
}

// resultOf sorts the samples, at least one. elapsed is 0 if there were pauses between them.
func resultOf(name string, took []time.Duration, elapsed time.Duration) Result {
	slices.Sort(took)
	quantile := func(q float64) float64 {
		return float64(took[int(q*float64(len(took)-1))]) / float64(time.Microsecond)
	}
	r := Result{Measurement: name, Count: len(took), Median: quantile(0.5), P99: quantile(0.99)}
	if elapsed > 0 {
		r.PerSecond = float64(len(took)) / elapsed.Seconds()
	}
	return r
}
