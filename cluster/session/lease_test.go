package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/hostinfo"
)

// TestAnUnconfirmedSession begins once, with a call for whose whole time no session was confirmed, and ends with one that is.
func TestAnUnconfirmedSession(t *testing.T) {
	u := newActiveSession()
	since := u.confirmations()
	require.True(t, u.markUnconfirmed(since))
	require.True(t, u.isUnconfirmed())
	require.False(t, u.markUnconfirmed(since), "it has begun")

	s := new(clientSession)
	s.extend(hostinfo.BootTime() + time.Hour)
	require.True(t, u.set(nil, s))
	require.False(t, u.isUnconfirmed())
	require.False(t, u.markUnconfirmed(since), "one was confirmed since that call began")
	since = u.confirmations()
	require.False(t, u.markUnconfirmed(since), "the one there is lasts")
	s.until = 0
	require.False(t, u.markUnconfirmed(since-1), "one was confirmed since that call began")
	require.False(t, u.isUnconfirmed())
	require.True(t, u.markUnconfirmed(since))
	require.True(t, u.isUnconfirmed())
}
