package stamp_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/internal/stamp"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]int64{
		"1970-01-01T00:00:01Z":                1e9,
		"1970-01-01T00:00:01.000000005Z":      1e9 + 5,
		"1970-01-01T01:00:01+01:00":           1e9,
		"1969-12-31T23:00:01.5-01:00":         15e8,
		"1970-01-02T00:00:00.999999999+23:59": 61e9 - 1,
	} {
		got, err := stamp.Parse(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got.UnixNano(), s)
		_, err = got.MarshalText()
		require.NoError(t, err)
	}
	for _, s := range []string{
		"", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01 00:00:00Z", "1970-01-01t00:00:00z",
		"1970-01-01T0:00:00Z", "1970-01-01T00:00:00,5Z", "1970-01-01T00:00:00.Z", "1970-02-30T00:00:00Z",
		"1970-01-01T24:00:00Z", "1970-01-01T00:00:60Z", "1970-01-01T00:00:00+24:00",
		"1970-01-01T00:00:00+00:60", "1970-01-01T00:00:00+0000", "1970-01-01T00:00:00.0123456789Z",
		"1970-01-01T00:00:00Z ", "+1970-01-01T00:00:00Z", "１970-01-01T00:00:00Z",
	} {
		_, err := stamp.Parse(s)
		require.Error(t, err, s)
	}
}

func TestCheckUTC(t *testing.T) {
	for s, ok := range map[string]bool{
		"2025-01-01T00:00:00Z": true, "2025-01-01T00:00:00+00:00": true, "2025-01-01T00:00:00+00:01": false,
	} {
		at, err := stamp.Parse(s)
		require.NoError(t, err)
		require.Equal(t, ok, stamp.CheckUTC(at) == nil, s)
	}
}

func TestAfterDoesNotOverflow(t *testing.T) {
	at := time.Unix(100, 7)
	require.True(t, time.Unix(1000, 7).Equal(stamp.After(at, 900)))
	for _, seconds := range []int64{stamp.Max, math.MaxInt64} {
		require.Equal(t, 9999, stamp.After(at, seconds).Year())
	}
}

func TestWords(t *testing.T) {
	require.Equal(t, "90 s ago", stamp.Ago(90*time.Second))
	require.Equal(t, "0 s ago", stamp.Ago(0))
	require.Equal(t, "5 s ahead of the clock", stamp.Ago(-5*time.Second))
	require.Equal(t, "0.25 s", stamp.Seconds(250*time.Millisecond))
	require.Contains(t, stamp.Ago(math.MinInt64), "ahead")
	require.Equal(t, time.Unix(7, 0).UTC(), stamp.Second(time.Unix(7, 999)))
}
