package lockfact

import (
	"math"
	"time"
)

// Facts is what a content says about its lock, worked out once when the content is written. Times are
// nanoseconds since the Unix epoch, in cluster time, whatever the clock of the writing host.
type Facts struct {
	Invalid   string // what is wrong with it, through [Problem]; empty for a valid content
	Holder    string // the name the format gives, through [HolderName]
	Host      string // the host that wrote the content
	PID       int    // as the content gives it, on Host; 0 if it gives none that can be used
	IssuedAt  int64  // the format's time of acquisition or last heartbeat; 0 if it has none
	ExpiresAt int64  // stale when the time is later than this; 0 = never by time
	Format    Format
	Guard     Guard   // who may remove it while it lives
	OnStale   OnStale // what happens to it when it does not

	// Conditional facts count only under a name that was created exclusively or says lock: data could have this content too.
	Conditional bool
}

// Cut is how much later than a timestamp in whole seconds the moment can have been that it stands for: the fraction is
// cut off. Expiry counts from the latest, so that nothing is stale early. In whole seconds, as scripts count, that is
// "greater than" to the nanosecond.
const Cut = time.Second - 1

// StaleAt reports whether the lock is stale by time at now, in nanoseconds of cluster time. At
// ExpiresAt itself it is still held: tower section 6.1 and semaphore "Stale Detection" are both
// "greater than".
func (f Facts) StaleAt(now int64) bool {
	return f.ExpiresAt != 0 && now > f.ExpiresAt
}

// ByProcess reports whether the lock lives as long as the process PID on Host. Other formats carry a
// PID for people to read (tower section 12.3 forbids more).
func (f Facts) ByProcess() bool {
	return f.PID != 0 && f.Format.traits().byProcess
}

// SameHolder reports whether f and g speak of the same acquisition, so that a fencing token stays. A
// tower request, a swarm worker and a forrst owner are known by their name; the holder of any other
// format is a process. Of an invalid content only the host is known, and it is another holder's than any
// valid one. None knows no holder, so ask only about the others. Replicas decide by this, so it must not
// change.
func (f Facts) SameHolder(g Facts) bool {
	if f.Format != g.Format || f.Holder != g.Holder || (f.Invalid == "") != (g.Invalid == "") {
		return false
	}
	if f.Invalid == "" && f.Format.traits().byName {
		return true
	}
	return f.Host == g.Host && f.PID == g.PID
}

// Origin says where and when a content was written.
type Origin struct {
	Host        string        // the writing host's name in the cluster
	Hostname    string        // what hostname(1) says there; empty if it is the same as Host
	ClockOffset time.Duration // that host's wall clock minus cluster time
}

// ClusterTime translates a timestamp in the content, which is on the writing host's clock, to
// nanoseconds of cluster time. Times that nanoseconds cannot hold become the nearest that they can.
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

// InvalidFacts are the facts, without any rule, of a content that says which format it is of but breaks a
// rule of it: that format's guard, no holder, and never stale.
func InvalidFacts(format Format, problem error, guard Guard, host string) Facts {
	return Facts{Format: format, Invalid: Problem(problem), Host: host, Guard: guard, OnStale: Keep}
}
