package bench

import (
	"errors"
	"time"
)

const (
	// MaxWorkers is how many workers there may be: each is a thread and a file.
	MaxWorkers = 1000
	// MaxDuration is for how long one figure may be measured: every sample is kept.
	MaxDuration = time.Minute
)

// Plan is what to measure.
type Plan struct {
	Dir      string
	Workers  int           // at the same time, each on a name of its own
	Duration time.Duration // for each figure
	Only     []string      // names of measurements; none: all

	Progress func(measurement string, number, of int) // called before each
}

// Report is what was measured.
type Report struct {
	Version   string   `json:"version,omitempty"` // of the program
	Directory string   `json:"directory"`
	Cores     int      `json:"cores"`
	Workers   int      `json:"workers"`
	Seconds   float64  `json:"seconds"` // for each figure
	Results   []Result `json:"results"`
}

// Result is one measurement.
type Result struct {
	Measurement string  `json:"measurement"`
	Count       int     `json:"count"`
	Median      float64 `json:"median_us"`
	P99         float64 `json:"p99_us"`
	PerSecond   float64 `json:"per_second,omitempty"` // of all workers; not of handovers, which are held up on purpose
	Error       string  `json:"error,omitempty"`      // why there are no figures
}

// errNotExclusive is a file system's worst answer.
var errNotExclusive = errors.New("both had the lock at the same time")
