package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"lockfs/test/stats"
)

// Run measures. After the end of ctx it returns soon, with the cause.
func Run(ctx context.Context, plan Plan) (report *stats.Report, err error) {
	chosen, err := plan.choose()
	if err != nil {
		return nil, err
	}
	spaces, err := openSpaces(plan.Dirs, plan.Warn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeSpaces(spaces)) }()
	report = &stats.Report{
		Cores: runtime.NumCPU(), Kernel: kernel(),
		Workers: plan.Workers, OwnDirs: plan.OwnDirs, Seconds: plan.Duration.Seconds(),
	}
	for _, s := range spaces {
		report.Directories = append(report.Directories, describe(s.dir))
	}
	defer quietRuntime(plan.Workers)()
	for i, m := range chosen {
		step := Step{Measurement: m.Name, Number: i + 1, Of: len(chosen)}
		results, err := plan.measure(ctx, m, m.targets(spaces, plan.Together), step)
		if err != nil {
			return nil, err
		}
		report.Results = append(report.Results, results...)
	}
	return report, nil
}

func (p *Plan) choose() ([]Measurement, error) {
	switch {
	case len(p.Dirs) == 0:
		return nil, errors.New("no directory is given")
	case p.Workers < 1 || p.Workers > MaxWorkers:
		return nil, fmt.Errorf("%d workers: there can be 1 to %d", p.Workers, MaxWorkers)
	case p.Duration <= 0 || p.Duration > MaxDuration:
		return nil, fmt.Errorf("a duration of %v: it must be more than 0 and at most %v", p.Duration, MaxDuration)
	case len(p.Only) == 0:
		return All, nil
	}
	var chosen []Measurement
	for _, name := range p.Only {
		i := slices.IndexFunc(All, func(m Measurement) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no measurement %q, but %s", name, strings.Join(names(), ", "))
		}
		chosen = append(chosen, All[i])
	}
	return chosen, nil
}

// quietRuntime reduces the influence of the Go runtime until undo. A thread in a system call keeps its
// processor of the runtime for a while, so each worker gets one.
func quietRuntime(workers int) (undo func()) {
	processors := runtime.GOMAXPROCS(runtime.NumCPU() + workers)
	percent := debug.SetGCPercent(-1) // garbage is collected between the parts
	return func() {
		runtime.GOMAXPROCS(processors)
		debug.SetGCPercent(percent)
	}
}

// contest is a measurement in one target.
type contest struct {
	target  target
	trial   trial
	samples stats.Samples
	failed  error // the reason for missing figures
}

// measure runs one measurement in all targets. If a file system fails or behaves wrongly, its result is the
// error.
func (p *Plan) measure(ctx context.Context, m Measurement, targets []target, step Step) ([]stats.Result, error) {
	contests := make([]*contest, len(targets))
	defer func() {
		for _, c := range contests {
			c.close()
		}
	}()
	var length time.Duration
	step.Rounds, length = stats.Parts(p.Duration)
	p.Progress(step)
	for i, t := range targets {
		trial, err := m.prepare(ctx, t, p)
		contests[i] = &contest{target: t, trial: trial}
		if err := contests[i].check(m, err); err != nil {
			return nil, err
		}
	}
	for step.Round = 1; step.Round <= step.Rounds; step.Round++ {
		p.Progress(step)
		for _, c := range contests {
			if c.failed != nil {
				continue
			}
			runtime.GC()
			if err := c.check(m, c.trial.run(ctx, length, &c.samples)); err != nil {
				return nil, err
			}
		}
	}
	return summarize(m, contests), nil
}

func summarize(m Measurement, contests []*contest) []stats.Result {
	results := make([]stats.Result, len(contests))
	for i, c := range contests {
		if c.failed != nil {
			results[i] = stats.Result{Measurement: m.Name, Directories: c.target.dirs, Error: c.failed.Error()}
			continue
		}
		results[i] = c.samples.Result(m.Name, c.target.dirs)
	}
	stats.SetRatios(results)
	return results
}

// check separates a file system's error from errors that end the run.
func (c *contest) check(m Measurement, err error) error {
	for _, answer := range []error{syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.ENOLCK, errNotExclusive} {
		if errors.Is(err, answer) {
			c.failed = err
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("%s in %s: %w", m.Name, strings.Join(c.target.dirs, " and "), err)
	}
	return nil
}

func (c *contest) close() {
	if c != nil && c.trial != nil {
		c.trial.close()
	}
}
