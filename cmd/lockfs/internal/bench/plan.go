package bench

import (
	"errors"
	"time"
)

const (
	// MaxWorkers limits the workers: each is a thread and a file.
	MaxWorkers = 1000
	// MaxDuration limits the time of one figure, because every sample is kept.
	MaxDuration = time.Minute
)

// Plan selects the measurements.
type Plan struct {
	Dir      string
	Workers  int           // at the same time, each on a name of its own
	Duration time.Duration // for each figure
	Only     []string      // names of measurements; none: all

	Progress func(measurement string, number, of int) // called before each
}

// Report has the results of a plan.
type Report struct {
	Version   string   `json:"version,omitempty"` // of the program
	Directory string   `json:"directory"`
	Cores     int      `json:"cores"`
	Workers   int      `json:"workers"`
	Seconds   float64  `json:"seconds"` // for each figure
	Results   []Result `json:"results"`
}

// Result is the result of one measurement.
type Result struct {
	Measurement string  `json:"measurement"`
	Count       int     `json:"count"`
	Median      float64 `json:"median_us"`
	P99         float64 `json:"p99_us"`
	PerSecond   float64 `json:"per_second,omitempty"` // of all workers; not of handovers, which have pauses
	Error       string  `json:"error,omitempty"`      // why there are no figures
}

// errNotExclusive reports a broken file system.
var errNotExclusive = errors.New("both had the lock at the same time")
