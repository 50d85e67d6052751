package main

import "time"

const (
	// MaxWorkers is the largest number of workers: each is a thread, and a file in each directory.
	MaxWorkers = 1000
	// MaxDuration is the longest measurement of one figure, because all samples are kept.
	MaxDuration = time.Minute
)

// Plan is the plan of a run.
type Plan struct {
	Dirs     []string
	Together bool          // in all directories at once instead of in turn
	Workers  int           // each on its own names
	OwnDirs  bool          // each in its own directory, except for listings
	Duration time.Duration // of each figure
	Only     []string      // names of measurements; none: all

	Progress func(Step)        // called before each part
	Warn     func(text string) // called with warnings
}

// Step is the state of a run: a round and a measurement, from 1. Round 0 is preparation.
type Step struct {
	Measurement   string
	Number, Of    int
	Round, Rounds int
}
