// Package stats measures and reports speed: the report of the contest in test/bench, its quantiles, and
// timed workers. `lockfs bench --json` prints a part of it. It knows nothing of locks. Other programs use it
// too, so that compared figures are measured in the same way.
package stats

import (
	"cmp"
	"slices"
	"time"
)

// Report has the results and the machine.
type Report struct {
	Version     string      `json:"version,omitempty"` // of the program
	Cores       int         `json:"cores"`
	Kernel      string      `json:"kernel,omitempty"`
	Workers     int         `json:"workers"`
	OwnDirs     bool        `json:"own_dirs,omitempty"` // one directory for each worker
	Seconds     float64     `json:"seconds"`            // of each figure
	Directories []Directory `json:"directories"`
	Results     []Result    `json:"results"` // by measurement, then directory
}

// Directory is a measured directory, or the address of a service.
type Directory struct {
	Path   string `json:"path"`
	Type   string `json:"type"`   // of the file system, as in /proc/mounts
	Source string `json:"source"` // likewise
}

// Result is one measurement in one directory, between two, or in several at once.
type Result struct {
	Measurement string   `json:"measurement"`
	Directories []string `json:"directories"`
	Count       int      `json:"count"`
	Median      float64  `json:"median_us"`
	P99         float64  `json:"p99_us"`
	PerSecond   float64  `json:"per_second,omitempty"` // of all workers; not for handovers, which have pauses
	// Ratio is the quotient of this median and that of the measurement's first directory; 0 if one is
	// missing.
	Ratio float64 `json:"ratio,omitempty"`
	Error string  `json:"error,omitempty"` // the reason for missing figures
}

// Samples are the samples of one directory.
type Samples struct {
	Took    []time.Duration
	Elapsed time.Duration // while operations ran without a pause; 0: with pauses
}

// Result sorts the samples, at least one, and returns their result without a ratio.
func (s *Samples) Result(measurement string, directories []string) Result {
	slices.Sort(s.Took)
	r := Result{
		Measurement: measurement, Directories: directories, Count: len(s.Took),
		Median: Micros(quantile(s.Took, 0.5)), P99: Micros(quantile(s.Took, 0.99)),
	}
	if s.Elapsed > 0 {
		r.PerSecond = float64(len(s.Took)) / s.Elapsed.Seconds()
	}
	return r
}

// SetRatios compares the results of one measurement with the first.
func SetRatios(results []Result) {
	for i := range results {
		if results[0].Median > 0 {
			results[i].Ratio = results[i].Median / results[0].Median
		}
	}
}

// Quantile returns the largest of the lowest share q of at least one value: 0.5 is the median, for an even
// number the lower of the two in the middle. It keeps the order of the values.
func Quantile[T cmp.Ordered](of []T, q float64) T {
	return quantile(slices.Sorted(slices.Values(of)), q)
}

func quantile[T cmp.Ordered](sorted []T, q float64) T {
	return sorted[int(q*float64(len(sorted)-1))]
}

// Micros returns a duration in microseconds.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
