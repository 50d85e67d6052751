package page

import (
	"encoding/json"
	"fmt"
	"time"
)

// moment is a time in nanoseconds since the Unix epoch, cluster time; 0: there is none. In JSON it is a string as RFC 3339 has it.
type moment int64

// MarshalJSON is part of json.Marshaler.
func (m moment) MarshalJSON() ([]byte, error) { return json.Marshal(m.Text()) }

// Text is what a machine reads.
func (m moment) Text() string {
	return time.Unix(0, int64(m)).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// Clock is what people read who know the day.
func (m moment) Clock() string { return time.Unix(0, int64(m)).UTC().Format("15:04:05") }

// Day is what people read besides it.
func (m moment) Day() string { return time.Unix(0, int64(m)).UTC().Format("Jan 2") }

// Distance is how far it is from now, as the script renders it too: 42s, 7m, 3h 5m, 12d 4h; "in" before what is to come.
func (m moment) Distance(now moment) string {
	if m > now {
		return "in " + span(time.Duration(m-now))
	}
	return span(time.Duration(now - m))
}

// span shows a duration with no more than people read at a glance.
func span(d time.Duration) string {
	s := int64(d.Seconds())
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

// fine shows a short duration.
func fine(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
