package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/hostinfo"
)

// TestRecentlyAbandonedCalls is remembered for a while after it is settled.
func TestRecentlyAbandonedCalls(t *testing.T) {
	var u pendingCalls
	require.False(t, u.lately())
	one, other := u.begin(false), u.begin(true)
	u.end(one)
	require.True(t, u.any())
	require.True(t, u.lately())
	u.end(other)
	require.False(t, u.any())
	require.True(t, u.lately())
	u.last = max(1, hostinfo.BootTime()-latelyFor)
	require.False(t, u.lately())
}
