package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/hostinfo"
)

// TestATimeWithoutHope begins once, with a call for whose whole time no session was confirmed, and ends with one that is.
func TestATimeWithoutHope(t *testing.T) {
	u := newCurrent()
	since := u.confirmations()
	require.True(t, u.endured(since))
	require.True(t, u.isHopeless())
	require.False(t, u.endured(since), "it has begun")

	s := new(clientSession)
	s.extend(hostinfo.BootTime() + time.Hour)
	require.True(t, u.set(nil, s))
	require.False(t, u.isHopeless())
	require.False(t, u.endured(since), "one was confirmed since that call began")
	since = u.confirmations()
	require.False(t, u.endured(since), "the one there is lasts")
	s.until = 0
	require.False(t, u.endured(since-1), "one was confirmed since that call began")
	require.False(t, u.isHopeless())
	require.True(t, u.endured(since))
	require.True(t, u.isHopeless())
}
