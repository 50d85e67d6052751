package main

import (
	"context"
	"errors"
	"time"

	"lockfs/test/stats"
)

// trial is a measurement in one target.
type trial interface {
	// run measures for about a time, at least until there is one sample, and adds the samples.
	run(ctx context.Context, length time.Duration, s *stats.Samples) error
	close()
}

// errNotExclusive is a file system's worst answer.
var errNotExclusive = errors.New("both had the lock at the same time")
