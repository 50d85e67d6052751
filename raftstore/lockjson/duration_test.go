package lockjson

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurationsHaveOneForm(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s":     0,
		"5ms":    5 * time.Millisecond,
		"42s":    42*time.Second + 900*time.Millisecond,
		"3m12s":  3*time.Minute + 12*time.Second,
		"10m":    10 * time.Minute,
		"1h":     time.Hour,
		"1h5m":   time.Hour + 5*time.Minute,
		"1h0m7s": time.Hour + 7*time.Second,
		"1d":     24 * time.Hour,
		"2d3h":   51*time.Hour + 59*time.Minute,
		"10d":    240 * time.Hour,
		"-90d":   -90 * 24 * time.Hour,
		"20h":    20 * time.Hour,
	} {
		require.Equal(t, want, Duration(d))
	}
	require.Equal(t, "72h", Setting(72*time.Hour))
	require.Equal(t, "1m30s", Setting(90*time.Second))
}
