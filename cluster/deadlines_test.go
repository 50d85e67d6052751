package cluster

import (
	"testing"
	"time"

	"lockfs/raftstore/ids"

	"github.com/stretchr/testify/require"
)

// lookUntil looks for expired sessions as often as a leader does.
func lookUntil(t *sessionDeadlines, now *time.Duration, end time.Duration, live ...ids.Session) (over []ids.Session) {
	for *now < end {
		*now += sessionInterval
		over = append(over, t.expired(*now, live)...)
	}
	return over
}

func TestSessionsExpireOnlyAfterAFullTTL(t *testing.T) {
	t.Parallel()
	leases, now := newSessionDeadlines(10*time.Second), time.Duration(0)
	leases.reset(now)
	require.Empty(t, lookUntil(leases, &now, 10*time.Second, 1), "a full TTL from when the leader was elected")
	require.True(t, leases.renew(1, now, 5, 0))
	require.Empty(t, lookUntil(leases, &now, 20*time.Second, 1), "a full TTL from the keepalive")
	require.Equal(t, []ids.Session{1}, lookUntil(leases, &now, 20*time.Second+sessionInterval, 1))
}

func TestAnEndingSessionIsNotRenewed(t *testing.T) {
	t.Parallel()
	leases, now := newSessionDeadlines(time.Second), time.Duration(0)
	leases.reset(now)
	require.NotEmpty(t, lookUntil(leases, &now, 2*time.Second, 1))
	require.False(t, leases.renew(1, now, 5, 0))
	leases.cancelEnding(1, now)
	require.True(t, leases.renew(1, now, 5, 0))
}

func TestALeaderThatWasStoppedGivesFullTTLs(t *testing.T) {
	t.Parallel()
	leases, now := newSessionDeadlines(time.Second), time.Duration(0)
	leases.reset(now)
	require.Empty(t, leases.expired(now, []ids.Session{1}))
	now += time.Hour
	require.Empty(t, leases.expired(now, []ids.Session{1}), "keepalives may have waited for the leader")
	require.NotEmpty(t, lookUntil(leases, &now, now+2*time.Second, 1))
}

// TestSilentSessionsExpireOnASlowDisk has the leader loop wait two seconds for the disk between two looks, while the process runs.
func TestSilentSessionsExpireOnASlowDisk(t *testing.T) {
	t.Parallel()
	leases, now := newSessionDeadlines(10*time.Second), time.Duration(0)
	leases.reset(now)
	var ended []ids.Session
	for len(ended) == 0 {
		require.Less(t, now, time.Minute)
		for range 4 {
			now += sessionInterval
			leases.tick(now)
		}
		require.True(t, leases.renew(2, now, 5, 0))
		ended = leases.expired(now, []ids.Session{1, 2})
	}
	require.Equal(t, []ids.Session{1}, ended)
	require.LessOrEqual(t, now, 14*time.Second)
	now += time.Hour // a pause, which the tick notices first or the look does
	leases.tick(now)
	require.Equal(t, []ids.Session{1}, leases.expired(now, []ids.Session{1, 2}), "only the session that is ending")
}

func TestANewLeaderGivesFullTTLs(t *testing.T) {
	t.Parallel()
	leases, now := newSessionDeadlines(time.Second), time.Duration(0)
	leases.reset(now)
	require.NotEmpty(t, lookUntil(leases, &now, 2*time.Second, 1))
	leases.reset(now)
	require.True(t, leases.renew(1, now, 5, 0))
}

func TestWorstSessionDeadlines(t *testing.T) {
	t.Parallel()
	leases := newSessionDeadlines(time.Minute)
	leases.reset(0)
	require.True(t, leases.renew(1, 2*time.Second, 5, time.Second))
	require.True(t, leases.renew(2, 4*time.Second, 5, -time.Minute))
	require.True(t, leases.renew(3, 6*time.Second, 5, 2*time.Second))
	silent, offset := leases.worst(10 * time.Second)
	require.Equal(t, 8*time.Second, silent)
	require.Equal(t, -time.Minute, offset)
}
