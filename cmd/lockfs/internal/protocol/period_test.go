package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPeriods(t *testing.T) {
	for _, c := range []struct{ text, now, from, until string }{
		{"1h", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z"},
		{"1h", "2026-03-01T12:59:59.999Z", "2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z"},
		{"90s", "1969-12-31T23:59:59Z", "1969-12-31T23:58:30Z", "1970-01-01T00:00:00Z"},
		{"24h", "2026-03-01T12:00:00Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"day", "2026-03-01T12:00:00Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"day@03:00", "2026-03-01T02:59:59.999Z", "2026-02-28T03:00:00Z", "2026-03-01T03:00:00Z"},
		{"day@03:00", "2026-03-01T03:00:00Z", "2026-03-01T03:00:00Z", "2026-03-02T03:00:00Z"},
		{"day@03:30@Europe/Berlin", "2026-03-01T02:30:00Z", "2026-03-01T02:30:00Z", "2026-03-02T02:30:00Z"},
		{"day@12:00@Europe/Berlin", "2026-03-29T09:59:59Z", "2026-03-28T11:00:00Z", "2026-03-29T10:00:00Z"}, // 23 hours
	} {
		p, err := parsePeriod(c.text)
		require.NoError(t, err, c.text)
		now, err := time.Parse(time.RFC3339, c.now)
		require.NoError(t, err)
		from, until := p.at(now)
		require.Equal(t, []string{c.from, c.until}, []string{from.Format(time.RFC3339), until.Format(time.RFC3339)}, "%s at %s", c.text, c.now)
	}
	for _, wrong := range []string{"", "5", "0s", "-1h", "1500ms", "500ms", "days", "day@", "day@3", "day@24:00", "day@03:00@", "day03:00", "week"} {
		_, err := parsePeriod(wrong)
		require.ErrorIs(t, err, errPeriod, wrong)
	}
	_, err := parsePeriod("day@03:00@Nowhere/At_All")
	require.ErrorContains(t, err, "Nowhere/At_All")
}

// TestPeriodsFollowOneAnother: each moment is in one period, and the next begins where it ends.
func TestPeriodsFollowOneAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := parsePeriod(rapid.SampledFrom([]string{
			"1s", "7s", "1h", "25h", "day", "day@02:30@Europe/Berlin", "day@23:59", "day@00:30@Pacific/Apia", "day@01:30@America/New_York",
		}).Draw(t, "period"))
		require.NoError(t, err)
		now := time.Unix(rapid.Int64Range(-1<<33, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
		from, until := p.at(now)
		require.False(t, from.After(now))
		require.True(t, until.After(now))
		for _, inside := range []time.Time{from, until.Add(-1)} {
			again, end := p.at(inside)
			require.Equal(t, from, again)
			require.Equal(t, until, end)
		}
		next, _ := p.at(until)
		require.Equal(t, until, next)
	})
}
