package cluster

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRateLimitsOfVeryManyKeys up to a bound: those that are too many have the same attempts, until
// others need not be remembered any more.
func TestRateLimitsOfVeryManyKeys(t *testing.T) {
	t.Parallel()
	const now = time.Hour
	a := newRateLimits()
	for i := range maxKeys {
		require.True(t, a.allow(strconv.Itoa(i), now))
	}
	require.Len(t, a.keys, maxKeys)
	for i := range rateBurst {
		require.True(t, a.allow("more"+strconv.Itoa(i), now))
	}
	require.False(t, a.allow("one more", now), "they count as one")
	require.Len(t, a.keys, maxKeys+1)
	require.True(t, a.allow("0", now), "who is remembered has his own")

	later := now + rateInterval
	require.True(t, a.mayReport("1", now))
	require.True(t, a.allow("new", later), "most need not be remembered any more")
	require.Contains(t, a.keys, "1", "of whom was told just now")
	require.Contains(t, a.keys, "0", "who has used up one more since")
	require.Len(t, a.keys, 4, "and those who share")
}
