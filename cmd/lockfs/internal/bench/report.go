package bench

import (
	"slices"
	"time"
)

// Report is what was measured, and on what machine.
type Report struct {
	Version     string      `json:"version,omitempty"` // of the program
	Cores       int         `json:"cores"`
	Kernel      string      `json:"kernel"`
	Workers     int         `json:"workers"`
	OwnDirs     bool        `json:"own_dirs,omitempty"`
	Seconds     float64     `json:"seconds"` // for each figure
	Directories []Directory `json:"directories"`
	Results     []Result    `json:"results"` // in the order of measurements, then directories
}

// Directory is what was measured.
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

// samples is what was measured in one target.
type samples struct {
	took    []time.Duration
	elapsed time.Duration // while operations were under way without a pause; 0: there were pauses
}

func summarize(m Measurement, contests []*contest) []Result {
	results := make([]Result, len(contests))
	for i, c := range contests {
		r := &results[i]
		r.Measurement, r.Directories = m.Name, c.target.dirs
		if c.failed != nil {
			r.Error = c.failed.Error()
			continue
		}
		took := c.samples.took
		slices.Sort(took)
		r.Count, r.Median, r.P99 = len(took), micros(quantile(took, 0.5)), micros(quantile(took, 0.99))
		if c.samples.elapsed > 0 {
			r.PerSecond = float64(len(took)) / c.samples.elapsed.Seconds()
		}
		if results[0].Median > 0 {
			r.Ratio = r.Median / results[0].Median
		}
	}
	return results
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))]
}
