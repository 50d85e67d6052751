package cluster

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
)

const (
	// sampleTime is how long a sample of a node's figures takes, and samplesKept are those of an hour.
	sampleTime  = 30 * time.Second
	samplesKept = int(time.Hour / sampleTime)
)

// recent is what a node noticed of itself in the last hour, in memory only.
type recent struct {
	mu      sync.Mutex
	commits durations
	writes  durations
	lag     uint64
	samples []*clusterpb.Sample
}

func newRecent() *recent { return new(recent) }

// durations are some of those that there were, each as likely as any other.
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

// percentiles are the median and the 99th, in nanoseconds; 0 if there was nothing. They begin anew.
func (d *durations) percentiles() (count uint64, p50, p99 int64) {
	if count = d.count; count > 0 {
		slices.Sort(d.kept)
		p50, p99 = int64(d.kept[len(d.kept)/2]), int64(d.kept[len(d.kept)*99/100])
	}
	d.count, d.kept = 0, d.kept[:0]
	return count, p50, p99
}

func (r *recent) commit(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits.note(took)
}

func (r *recent) write(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes.note(took)
}

func (r *recent) behind(lag uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lag = max(r.lag, lag)
}

// finish makes a sample of what was noticed since the last one.
func (r *recent) finish(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sample := &clusterpb.Sample{Ended: now.UnixNano(), Lag: r.lag}
	sample.Commits, sample.CommitP50, sample.CommitP99 = r.commits.percentiles()
	sample.Writes, sample.WriteP50, sample.WriteP99 = r.writes.percentiles()
	r.lag = 0
	if len(r.samples) == samplesKept {
		r.samples = slices.Delete(r.samples, 0, 1)
	}
	r.samples = append(r.samples, sample)
}

func (r *recent) all() []*clusterpb.Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.samples)
}
