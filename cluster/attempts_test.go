package cluster

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAttemptsOfVeryManyAreRemembered up to a bound: those that are too many have the same attempts, until others need not be
// remembered any more.
func TestAttemptsOfVeryManyAreRemembered(t *testing.T) {
	t.Parallel()
	const now = time.Hour
	a := newAttempts()
	for i := range mostAttempts {
		require.True(t, a.allowed(strconv.Itoa(i), now))
	}
	require.Len(t, a.from, mostAttempts)
	for i := range attemptsAtOnce {
		require.True(t, a.allowed("more"+strconv.Itoa(i), now))
	}
	require.False(t, a.allowed("one more", now), "they count as one")
	require.Len(t, a.from, mostAttempts+1)
	require.True(t, a.allowed("0", now), "who is remembered has his own")

	later := now + attemptInterval
	require.True(t, a.newRefusal("1", now))
	require.True(t, a.allowed("new", later), "most need not be remembered any more")
	require.Contains(t, a.from, "1", "of whom was told just now")
	require.Contains(t, a.from, "0", "who has used up one more since")
	require.Len(t, a.from, 4, "and those who share")
}
