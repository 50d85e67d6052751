package lockfact

import (
	"math"
	"time"
)

// Govern gives the facts of a lock under the rule, from those that were worked out of its content
// without any; mtime is the file's, in nanoseconds of cluster time, 0 if it is not known.
//
// A lock of another format than the rule's is of no format, and StaleAfter, which was meant for the
// rule's format, does not apply to it. StaleAfter counts for a semaphore from the latest instant that IssuedAt, in
// whole seconds, can mean, and from mtime for what is of no format; an invalid content is never stale. Guard and OnStale apply to all but Data. Who
// a Holder is depends on the name, not on the content, so it changes nothing here.
//
// This is arithmetic alone. Replicas decide by it, so it must not change.
func (r Rule) Govern(f Facts, mtime int64) Facts {
	if r.Format == Data {
		return NoneFacts(f.Host)
	}
	if r.Format != 0 && r.Format != f.Format {
		f = NoneFacts(f.Host)
		if r.Format != None {
			r.StaleAfter = 0
		}
	}
	if r.StaleAfter != 0 && f.Invalid == "" {
		switch {
		case f.Format == Semaphore:
			f.ExpiresAt = deadline(plus(f.IssuedAt, Cut), r.StaleAfter)
		case f.Format == None && mtime != 0:
			f.ExpiresAt = deadline(mtime, r.StaleAfter)
		}
	}
	return r.Override(f)
}

// NoneFacts are the facts, without any rule, of a content of no format.
func NoneFacts(host string) Facts {
	return Facts{Format: None, Host: host, Guard: GuardAnyone, OnStale: Keep}
}

// deadline is plus for an expiry: never 0, which would mean "never".
func deadline(from int64, after time.Duration) int64 {
	if sum := plus(from, after); sum != 0 {
		return sum
	}
	return 1
}

// plus is a time in nanoseconds plus a duration: the nearest that nanoseconds can hold.
func plus(from int64, d time.Duration) int64 {
	sum := from + int64(d)
	switch {
	case d > 0 && sum < from:
		return math.MaxInt64
	case d < 0 && sum > from:
		return math.MinInt64
	}
	return sum
}
