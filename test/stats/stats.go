// Package stats is how speed is measured and told: what the contest of test/bench prints, of which `lockfs bench --json` prints a part, the
// quantiles in it, and the workers whose time is taken. It knows nothing of locks. Programs that measure something else in the same way use it too, so that
// two figures that are compared have been made alike.
package stats

import (
	"cmp"
	"slices"
	"time"
)

// Report is what was measured, and on what machine.
type Report struct {
	Version     string      `json:"version,omitempty"` // of the program
	Cores       int         `json:"cores"`
	Kernel      string      `json:"kernel,omitempty"`
	Workers     int         `json:"workers"`
	OwnDirs     bool        `json:"own_dirs,omitempty"` // each worker has a directory of its own
	Seconds     float64     `json:"seconds"`            // for each figure
	Directories []Directory `json:"directories"`
	Results     []Result    `json:"results"` // in the order of measurements, then directories
}

// Directory is what was measured; of a service, an address.
type Directory struct {
	Path   string `json:"path"`
	Type   string `json:"type"`   // of the file system, as in /proc/mounts
	Source string `json:"source"` // likewise
}

// Result is one measurement in one directory: or between two, or in several at once.
type Result struct {
	Measurement string   `json:"measurement"`
	Directories []string `json:"directories"`
	Count       int      `json:"count"`
	Median      float64  `json:"median_us"`
	P99         float64  `json:"p99_us"`
	PerSecond   float64  `json:"per_second,omitempty"` // of all workers; not of handovers, which are held up on purpose
	// Ratio is this median to that of the measurement's first directory; 0: one of them has none.
	Ratio float64 `json:"ratio,omitempty"`
	Error string  `json:"error,omitempty"` // why there are no figures
}

// Samples is what was measured in one directory.
type Samples struct {
	Took    []time.Duration
	Elapsed time.Duration // while operations were under way without a pause; 0: there were pauses
}

// Result makes the result of samples, of which there is at least one, and sorts them. It has no ratio yet.
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

// SetRatios compares the results of one measurement with the first of them.
func SetRatios(results []Result) {
	for i := range results {
		if results[0].Median > 0 {
			results[i].Ratio = results[i].Median / results[0].Median
		}
	}
}

// Quantile is the largest of the lowest share q of values: 0.5 is the median, of an even number the lower one in the middle.
// There must be a value. Their order stays as it is.
func Quantile[T cmp.Ordered](of []T, q float64) T {
	return quantile(slices.Sorted(slices.Values(of)), q)
}

func quantile[T cmp.Ordered](sorted []T, q float64) T {
	return sorted[int(q*float64(len(sorted)-1))]
}

// Micros is a time in microseconds.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
