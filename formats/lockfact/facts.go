package lockfact

import (
	"math"
	"time"
)

// Facts describes the lock of a content. It is computed once, when the content is written. Times are
// nanoseconds since the Unix epoch in cluster time, not on the clock of the writing host.
type Facts struct {
	Invalid   string // the problem, through [Problem]; empty if valid
	Holder    string // from the content, through [HolderName]
	Host      string // the writing host
	PID       int    // from the content, on Host; 0 if missing or unusable
	IssuedAt  int64  // the format's time of acquisition or last heartbeat; 0: none
	ExpiresAt int64  // stale after this time; 0: never by time
	Format    Format
	Guard     Guard   // restricts removal while it lives
	OnStale   OnStale // treatment once it is stale

	// Conditional facts count only under a name that was created exclusively or indicates a lock. Data could
	// have the same content.
	Conditional bool
}

// Cut is the maximum difference between an instant and its timestamp in whole seconds, which is cut. Expiry
// counts from the latest possible instant, so nothing is stale early. In whole seconds, as in scripts, this
// is exactly "greater than".
const Cut = time.Second - 1

// StaleAt reports whether the lock is stale by time at now, in nanoseconds of cluster time. At ExpiresAt
// itself it is still held: tower section 6.1 and semaphore "Stale Detection" say "greater than".
func (f Facts) StaleAt(now int64) bool {
	return f.ExpiresAt != 0 && now > f.ExpiresAt
}

// ByProcess reports whether the lock lives as long as the process PID on Host. In other formats, PID is for
// people only (tower section 12.3).
func (f Facts) ByProcess() bool {
	return f.PID != 0 && f.Format.traits().byProcess
}

// SameHolder reports whether f and g describe the same acquisition, so the fencing token stays. A name
// identifies a tower request, a swarm worker and a forrst owner; a process identifies other holders. Of an
// invalid content only the host is known, and its holder differs from any valid one. None has no holder, so
// call it for other formats only. Replicas decide by it, so it must not change.
func (f Facts) SameHolder(g Facts) bool {
	if f.Format != g.Format || f.Holder != g.Holder || (f.Invalid == "") != (g.Invalid == "") {
		return false
	}
	if f.Invalid == "" && f.Format.traits().byName {
		return true
	}
	return f.Host == g.Host && f.PID == g.PID
}

// Origin is where and on which clock a content was written.
type Origin struct {
	Host        string        // name of the writing host in the cluster
	Hostname    string        // output of hostname(1) there; empty if equal to Host
	ClockOffset time.Duration // that host's wall clock minus cluster time
}

// ClusterTime translates a timestamp on the writing host's clock to nanoseconds of cluster time. Times out of
// range become the nearest in range.
func (o Origin) ClusterTime(t time.Time) int64 {
	return nanoseconds(t.Add(-1 - o.ClockOffset).Add(1)) // -ClockOffset alone may overflow
}

// Deadline is ClusterTime for an expiry: never 0, which would mean "never".
func (o Origin) Deadline(t time.Time) int64 {
	if ns := o.ClusterTime(t); ns != 0 {
		return ns
	}
	return 1
}

func nanoseconds(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// InvalidFacts returns the facts, without any rule, of a content with the mark of a format and a broken rule.
// It has the format's guard and no holder, and is never stale.
func InvalidFacts(format Format, problem error, guard Guard, host string) Facts {
	return Facts{Format: format, Invalid: Problem(problem), Host: host, Guard: guard, OnStale: Keep}
}
