// Package figures is what `lockfs bench --json` prints, for programs that read it or print the same of something else.
package figures

import (
	"slices"
	"time"
)

// Report is what was measured, and on what machine.
type Report struct {
	Version     string      `json:"version,omitempty"`
	Cores       int         `json:"cores"`
	Kernel      string      `json:"kernel,omitempty"`
	Workers     int         `json:"workers"`
	OwnDirs     bool        `json:"own_dirs,omitempty"` // each worker has a directory of its own
	Seconds     float64     `json:"seconds"`            // for each figure
	Directories []Directory `json:"directories"`
	Results     []Result    `json:"results"`
}

// Directory is what was measured; of a service, an address.
type Directory struct {
	Path   string `json:"path"`
	Type   string `json:"type"`
	Source string `json:"source"`
}

// Result is one measurement in one directory: or between two, or in several at once.
type Result struct {
	Measurement string   `json:"measurement"`
	Directories []string `json:"directories"`
	Count       int      `json:"count"`
	Median      float64  `json:"median_us"`
	P99         float64  `json:"p99_us"`
	PerSecond   float64  `json:"per_second,omitempty"` // of all workers
	Ratio       float64  `json:"ratio,omitempty"`      // of the median to that of the measurement's first directory
	Error       string   `json:"error,omitempty"`      // why there are no figures
}

// Of makes a result of samples.
func Of(measurement string, directories []string, took []time.Duration, elapsed time.Duration) Result {
	slices.Sort(took)
	return Result{
		Measurement: measurement, Directories: directories, Count: len(took),
		Median: micros(quantile(took, 0.5)), P99: micros(quantile(took, 0.99)),
		PerSecond: float64(len(took)) / elapsed.Seconds(),
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))]
}
