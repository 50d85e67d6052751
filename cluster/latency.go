package cluster

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
)

const (
	// sampleTime is the length of a sample, and samplesKept is an hour of them.
	sampleTime  = 30 * time.Second
	samplesKept = int(time.Hour / sampleTime)
)

// latencyWindow has a node's latencies of the last hour, in memory.
type latencyWindow struct {
	mu      sync.Mutex
	commits durations
	writes  durations
	lag     uint64
	samples []*clusterpb.Sample
}

func newLatencyWindow() *latencyWindow { return new(latencyWindow) }

// durations is a uniform sample.
type durations struct {
	count uint64
	kept  []time.Duration
}

// durationsKept are enough for a 99th percentile.
const durationsKept = 2048

func (d *durations) note(took time.Duration) {
	d.count++
	if len(d.kept) < durationsKept {
		d.kept = append(d.kept, took)
	} else if i := rand.Uint64N(d.count); i < durationsKept {
		d.kept[i] = took
	}
}

// percentiles returns the median and the 99th percentile in nanoseconds, 0 without data, and resets the
// sample.
func (d *durations) percentiles() (count uint64, p50, p99 int64) {
	if count = d.count; count > 0 {
		slices.Sort(d.kept)
		p50, p99 = int64(d.kept[len(d.kept)/2]), int64(d.kept[len(d.kept)*99/100])
	}
	d.count, d.kept = 0, d.kept[:0]
	return count, p50, p99
}

func (w *latencyWindow) recordCommit(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits.note(took)
}

func (w *latencyWindow) recordWrite(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes.note(took)
}

func (w *latencyWindow) recordLag(lag uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lag = max(w.lag, lag)
}

// closeSample ends the present sample.
func (w *latencyWindow) closeSample(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sample := &clusterpb.Sample{Ended: now.UnixNano(), Lag: w.lag}
	sample.Commits, sample.CommitP50, sample.CommitP99 = w.commits.percentiles()
	sample.Writes, sample.WriteP50, sample.WriteP99 = w.writes.percentiles()
	w.lag = 0
	if len(w.samples) == samplesKept {
		w.samples = slices.Delete(w.samples, 0, 1)
	}
	w.samples = append(w.samples, sample)
}

func (w *latencyWindow) all() []*clusterpb.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.samples)
}
