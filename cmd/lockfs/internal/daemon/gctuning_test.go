package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCollectorPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 8 << 20: 400, 9 << 20: 200, 33 << 20: 50, 1 << 30: 25, 64 << 30: 25} {
		require.Equal(t, want, collectorPercent(live, serverPercent), "%d bytes", live)
	}
	require.Equal(t, 100, collectorPercent(8<<20, mountPercent))
	require.Equal(t, 25, collectorPercent(90<<20, mountPercent))
}
