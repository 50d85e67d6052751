package page

import (
	"encoding/json"
	"fmt"
	"time"
)

// moment is cluster time in nanoseconds since the Unix epoch; 0: none. Its JSON is a string in RFC 3339
// format.
type moment int64

// MarshalJSON implements json.Marshaler.
func (m moment) MarshalJSON() ([]byte, error) { return json.Marshal(m.Text()) }

// Text returns the time for programs.
func (m moment) Text() string {
	return time.Unix(0, int64(m)).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// Clock returns the time of day.
func (m moment) Clock() string { return time.Unix(0, int64(m)).UTC().Format("15:04:05") }

// Day returns the date.
func (m moment) Day() string { return time.Unix(0, int64(m)).UTC().Format("Jan 2") }

// Distance returns the distance from now in the script's format: "in 42s" for a future time, "7m 3s ago" for
// a past one.
func (m moment) Distance(now moment) string {
	if m > now {
		return "in " + span(time.Duration(m-now))
	}
	return span(time.Duration(now-m)) + " ago"
}

// span returns a duration in the script's format: 42s, 7m 3s, 3h 5m, 12d 4h. A negative one is 0s.
func span(d time.Duration) string {
	s := int64(max(d, 0).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh %dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd %dh", s/86400, s/3600%24)
}

func fine(d time.Duration) string {
	switch {
	case d == 0:
		return "0 ms"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
