package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lookUntil looks for expired sessions as often as a leader does.
func lookUntil(t *terms, now *time.Duration, end time.Duration, live ...uint64) (over []uint64) {
	for *now < end {
		*now += sessionLook
		over = append(over, t.expired(*now, live)...)
	}
	return over
}

func TestTermsEndOnlyAfterAFullTerm(t *testing.T) {
	terms, now := newTerms(10*time.Second), time.Duration(0)
	terms.reset(now)
	require.Empty(t, lookUntil(terms, &now, 10*time.Second, 1), "a full term from when the leader took office")
	require.True(t, terms.renew(1, now, 5, 0))
	require.Empty(t, lookUntil(terms, &now, 20*time.Second, 1), "a full term from the keepalive")
	require.Equal(t, []uint64{1}, lookUntil(terms, &now, 20*time.Second+sessionLook, 1))
}

func TestTermsAnEndingSessionIsNotRenewed(t *testing.T) {
	terms, now := newTerms(time.Second), time.Duration(0)
	terms.reset(now)
	require.NotEmpty(t, lookUntil(terms, &now, 2*time.Second, 1))
	require.False(t, terms.renew(1, now, 5, 0))
	terms.spare(1, now)
	require.True(t, terms.renew(1, now, 5, 0))
}

func TestTermsALeaderThatWasStoppedGivesFullTerms(t *testing.T) {
	terms, now := newTerms(time.Second), time.Duration(0)
	terms.reset(now)
	require.Empty(t, terms.expired(now, []uint64{1}))
	now += time.Hour
	require.Empty(t, terms.expired(now, []uint64{1}), "keepalives may have waited for the leader")
	require.NotEmpty(t, lookUntil(terms, &now, now+2*time.Second, 1))
}

func TestTermsANewLeaderGivesFullTerms(t *testing.T) {
	terms, now := newTerms(time.Second), time.Duration(0)
	terms.reset(now)
	require.NotEmpty(t, lookUntil(terms, &now, 2*time.Second, 1))
	terms.reset(now)
	require.True(t, terms.renew(1, now, 5, 0))
}
