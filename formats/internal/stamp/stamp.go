// Package stamp reads and writes the timestamps of lock files and does arithmetic that hostile numbers
// cannot overflow.
package stamp

import (
	"errors"
	"regexp"
	"strconv"
	"time"

	"lockfs/formats/lockfact"
)

// Max is the last second that RFC 3339 can write, in seconds since the Unix epoch.
const Max = 253402300799

var (
	errSyntax = errors.New("must be an RFC 3339 timestamp such as 2025-12-18T10:30:10Z")
	errUTC    = errors.New("must be in UTC, ending in Z")
)

// rfc3339 is the form that time.Parse alone does not insist on.
var rfc3339 = regexp.MustCompile(
	`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// Parse accepts an RFC 3339 timestamp, with up to nine digits of a second's fraction.
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

// CheckUTC refuses a time that was written with an offset.
func CheckUTC(t time.Time) error {
	if _, offset := t.Zone(); offset != 0 {
		return errUTC
	}
	return nil
}

// Second is t in UTC, cut to the whole second: what date -u +%Y-%m-%dT%H:%M:%SZ prints.
func Second(t time.Time) time.Time {
	return t.UTC().Truncate(time.Second)
}

// Latest is the latest instant that a timestamp can mean. One in whole seconds was cut to that, by whoever wrote it.
func Latest(t time.Time) time.Time {
	if t.Nanosecond() == 0 {
		t = t.Add(lockfact.Cut)
	}
	return t
}

// After is t plus a number of seconds, or the end of the year 9999 if that comes first.
func After(t time.Time, seconds int64) time.Time {
	if seconds > Max-t.Unix() {
		return time.Unix(Max, 0).UTC()
	}
	return time.Unix(t.Unix()+seconds, int64(t.Nanosecond())).UTC()
}

// Ago says how far back d is, such as "90 s ago", or "90 s ahead of the clock".
func Ago(d time.Duration) string {
	if d < 0 {
		return Seconds(-d) + " ahead of the clock"
	}
	return Seconds(d) + " ago"
}

// Seconds is d in seconds, with thousandths where there are any: "90 s", "0.25 s".
func Seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(time.Millisecond).Seconds(), 'f', -1, 64) + " s"
}
