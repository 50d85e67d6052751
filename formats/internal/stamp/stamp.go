// Package stamp reads and writes the timestamps of lock files. Its arithmetic does not overflow with hostile
// numbers.
package stamp

import (
	"errors"
	"regexp"
	"strconv"
	"time"

	"lockfs/formats/lockfact"
)

// Max is the last second of RFC 3339, in seconds since the Unix epoch.
const Max = 253402300799

var (
	errSyntax = errors.New("must be an RFC 3339 timestamp such as 2025-12-18T10:30:10Z")
	errUTC    = errors.New("must be in UTC, ending in Z")
)

// rfc3339 is stricter than time.Parse.
var rfc3339 = regexp.MustCompile(
	`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// Parse parses an RFC 3339 timestamp with up to nine digits of a fraction.
func Parse(s string) (time.Time, error) {
	if !rfc3339.MatchString(s) {
		return time.Time{}, errSyntax
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, errSyntax
	}
	return t, nil
}

// CheckUTC returns an error for a time with an offset.
func CheckUTC(t time.Time) error {
	if _, offset := t.Zone(); offset != 0 {
		return errUTC
	}
	return nil
}

// Second returns t in UTC, cut to the whole second, as date -u +%Y-%m-%dT%H:%M:%SZ prints it.
func Second(t time.Time) time.Time {
	return t.UTC().Truncate(time.Second)
}

// Latest returns the latest instant that a timestamp can mean: writers cut timestamps to whole seconds.
func Latest(t time.Time) time.Time {
	if t.Nanosecond() == 0 {
		t = t.Add(lockfact.Cut)
	}
	return t
}

// After returns t plus a number of seconds, at most the end of the year 9999.
func After(t time.Time, seconds int64) time.Time {
	if seconds > Max-t.Unix() {
		return time.Unix(Max, 0).UTC()
	}
	return time.Unix(t.Unix()+seconds, int64(t.Nanosecond())).UTC()
}

// Ago describes how far back d is, such as "90 s ago", or "90 s ahead of the clock".
func Ago(d time.Duration) string {
	if d < 0 {
		return Seconds(-d) + " ahead of the clock"
	}
	return Seconds(d) + " ago"
}

// Seconds formats d in seconds, with thousandths if there are any: "90 s", "0.25 s".
func Seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(time.Millisecond).Seconds(), 'f', -1, 64) + " s"
}
