package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCollectorPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 8 << 20: 400, 9 << 20: 200, 33 << 20: 50, 1 << 30: 25, 64 << 30: 25} {
		require.Equal(t, want, collectorPercent(live), "%d bytes", live)
	}
}
