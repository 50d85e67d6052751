package lockjson

import (
	"fmt"
	"strings"
	"time"
)

// Duration formats an age or a duration for readers: 42s, 3m12s, 1h5m, 2d3h. It omits fractions of a second,
// and minutes after a day.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d >= day && d%day < time.Hour:
		return fmt.Sprintf("%dd", d/day)
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Second:
		d = d.Truncate(time.Second)
	}
	return Setting(d)
}

// Setting formats a duration exactly, in the form of flags: 10m, 1m30s, 24h.
func Setting(d time.Duration) string {
	text := d.String()
	for _, zero := range []struct{ after, text string }{{"m", "0s"}, {"h", "0m"}} {
		if strings.HasSuffix(text, zero.after+zero.text) {
			text = strings.TrimSuffix(text, zero.text)
		}
	}
	return text
}
