package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// expiredOf is expired for sessions by their ids.
func expiredOf(t *sessionDeadlines, now time.Duration, live ...ids.Session) (over []ids.Session) {
	var sessions []namespace.LiveSession
	for _, id := range live {
		sessions = append(sessions, namespace.LiveSession{ID: id})
	}
	for _, session := range t.expired(now, sessions) {
		over = append(over, session.ID)
	}
	return over
}

// lookUntil looks for expired sessions as often as a leader does.
func lookUntil(t *sessionDeadlines, now *time.Duration, end time.Duration, live ...ids.Session) (over []ids.Session) {
	for *now < end {
		*now += sessionInterval
		over = append(over, expiredOf(t, *now, live...)...)
	}
	return over
}

func TestSessionsExpireOnlyAfterAFullTTL(t *testing.T) {
	t.Parallel()
	leases, now := newSessionDeadlines(10*time.Second), time.Duration(0)
	leases.reset(now)
	require.Empty(t, lookUntil(leases, &now, 10*time.Second, 1), "a full TTL from when the leader was elected")
	require.True(t, leases.renew(1, now, 5, 0, ""))
	require.Empty(t, lookUntil(leases, &now, 20*time.Second, 1), "a full TTL from the keepalive")
	require.Equal(t, []ids.Session{1}, lookUntil(leases, &now, 20*time.Second+sessionInterval, 1))
}

func TestAnEndingSessionIsNotRenewed(t *testing.T) {
	t.Parallel()
	leases, now := newSessionDeadlines(time.Second), time.Duration(0)
	leases.reset(now)
	require.NotEmpty(t, lookUntil(leases, &now, 2*time.Second, 1))
	require.False(t, leases.renew(1, now, 5, 0, ""))
	leases.cancelEnding(1, now)
	require.True(t, leases.renew(1, now, 5, 0, ""))
}

func TestALeaderThatWasStoppedGivesFullTTLs(t *testing.T) {
	t.Parallel()
	leases, now := newSessionDeadlines(time.Second), time.Duration(0)
	leases.reset(now)
	require.Empty(t, expiredOf(leases, now, 1))
	now += time.Hour
	require.Empty(t, expiredOf(leases, now, 1), "keepalives may have waited for the leader")
	require.NotEmpty(t, lookUntil(leases, &now, now+2*time.Second, 1))
}

// TestSilentSessionsExpireOnASlowDisk has the leader loop wait two seconds for the disk between two
// looks, while the process runs.
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
		require.True(t, leases.renew(2, now, 5, 0, ""))
		ended = expiredOf(leases, now, 1, 2)
	}
	require.Equal(t, []ids.Session{1}, ended)
	require.LessOrEqual(t, now, 14*time.Second)
	now += time.Hour // a pause, which the tick notices first or the look does
	leases.tick(now)
	require.Equal(t, []ids.Session{1}, expiredOf(leases, now, 1, 2), "only the session that is ending")
}

func TestANewLeaderGivesFullTTLs(t *testing.T) {
	t.Parallel()
	leases, now := newSessionDeadlines(time.Second), time.Duration(0)
	leases.reset(now)
	require.NotEmpty(t, lookUntil(leases, &now, 2*time.Second, 1))
	leases.reset(now)
	require.True(t, leases.renew(1, now, 5, 0, ""))
}

func TestWorstSessionDeadlines(t *testing.T) {
	t.Parallel()
	leases := newSessionDeadlines(time.Minute)
	leases.reset(0)
	require.True(t, leases.renew(1, 2*time.Second, 5, time.Second, ""))
	require.True(t, leases.renew(2, 4*time.Second, 5, -time.Minute, ""))
	require.True(t, leases.renew(3, 6*time.Second, 5, 2*time.Second, ""))
	silent, offset := leases.worst(10 * time.Second)
	require.Equal(t, 8*time.Second, silent)
	require.Equal(t, -time.Minute, offset)
}

// TestProgramsOfSessions: the version of a mount's program is a short valid text, whatever the mount sends.
func TestProgramsOfSessions(t *testing.T) {
	t.Parallel()
	deadlines := newSessionDeadlines(time.Minute)
	deadlines.reset(0)
	for sent, kept := range map[string]string{
		"": "", "1.2.3": "1.2.3", strings.Repeat("x", longestProgram+1): strings.Repeat("x", longestProgram),
		strings.Repeat("x", longestProgram-1) + "→": strings.Repeat("x", longestProgram-1),
	} {
		require.True(t, deadlines.renew(1, 0, 5, 0, sent))
		require.Equal(t, kept, deadlines.get(1, 0).program)
	}
}

// TestSessionDeadlinesForgetSessionsThatAreOver, and no others.
func TestSessionDeadlinesForgetSessionsThatAreOver(t *testing.T) {
	t.Parallel()
	leases := newSessionDeadlines(time.Second)
	leases.reset(0)
	require.Empty(t, expiredOf(leases, 0, 1, 2, 3))
	require.True(t, leases.renew(4, 0, 5, 0, ""))
	require.Empty(t, expiredOf(leases, 0, 1, 3))
	require.Len(t, leases.sessions, 2)
	require.Contains(t, leases.sessions, ids.Session(1))
	require.Contains(t, leases.sessions, ids.Session(3))
}
