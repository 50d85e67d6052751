package main

import "time"

const (
	// MaxWorkers is how many there may be: each is a thread, and a file in each directory.
	MaxWorkers = 1000
	// MaxDuration is for how long one figure may be measured: every sample is kept.
	MaxDuration = time.Minute
)

// Plan is what to measure.
type Plan struct {
	Dirs     []string
	Together bool          // the workers are spread over all directories at once, instead of each directory in turn
	Workers  int           // each on names of its own
	OwnDirs  bool          // each in a directory of its own, too, except for listings
	Duration time.Duration // for each figure
	Only     []string      // names of measurements; none: all

	Progress func(Step)        // called before each part
	Warn     func(text string) // called with what the user should know
}

// Step is where a run is: in a round, from 1, of a measurement, from 1. Round 0 is its preparation.
type Step struct {
	Measurement   string
	Number, Of    int
	Round, Rounds int
}
