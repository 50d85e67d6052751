package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"lockfs/test/stats"
)

// crew is a set of workers with the same job at the same time, each on its own name.
type crew struct {
	folders []folder
	jobs    []job
	workers stats.Crew
}

var _ trial = (*crew)(nil)

// crewOf returns a measurement of a job, with workers on all paths of a target.
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
			c.workers.Add(j.once)
		}
		return c, nil
	}
}

// inOneDir is for workers that stay in one directory.
func inOneDir(prepare func(context.Context, target, *Plan) (trial, error)) func(context.Context, target, *Plan) (trial, error) {
	return func(ctx context.Context, t target, p *Plan) (trial, error) {
		shared := *p
		shared.OwnDirs = false
		return prepare(ctx, t, &shared)
	}
}

func (c *crew) run(ctx context.Context, length time.Duration, s *stats.Samples) error {
	return c.workers.Run(ctx, length, s)
}

// close removes the workers' files. The removal of the space reports remaining ones.
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
