package lockfact

import (
	"math"
	"time"
)

// Govern returns the facts of a lock under the rule, from its facts without any. mtime is the file's, in
// nanoseconds of cluster time; 0: unknown.
//
// A lock of another format than the rule's has no format, and StaleAfter does not apply to it, except in a
// rule for None. For a semaphore, StaleAfter counts from the latest instant of IssuedAt, which has whole
// seconds. Without a format, it counts from mtime. An invalid content is never stale. Guard and OnStale apply
// to all but Data. Holder depends on the name, not on the content, so it changes nothing here.
//
// Govern is arithmetic alone. Replicas decide by it, so it must not change.
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

// NoneFacts returns the facts, without any rule, of a content of no format.
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

// plus adds a duration to a time in nanoseconds. Out of range, it returns the nearest value.
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
