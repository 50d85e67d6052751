package faultinjection

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAScheduleFollowsFromItsSeed: the same comes of the same, and something else of another seed.
func TestAScheduleFollowsFromItsSeed(t *testing.T) {
	t.Parallel()
	size := Size{Seed: 7, Length: 10 * time.Minute, AtOnce: 3, Term: 3 * time.Second}
	strikes := Schedule(size)
	require.Equal(t, strikes, Schedule(size))
	other := size
	other.Seed++
	require.NotEqual(t, strikes, Schedule(other))
	longer := size
	longer.Length *= 2
	require.Equal(t, strikes, Schedule(longer)[:len(strikes)], "a longer one begins in the same way")
}

func TestAScheduleIsFair(t *testing.T) {
	t.Parallel()
	size := Size{Seed: 1, Length: 10 * time.Minute, AtOnce: 3, Term: 3 * time.Second}
	strikes := Schedule(size)
	count := make(map[string]int)
	most := 0
	for i, s := range strikes {
		count[s.Kind]++
		assert.LessOrEqual(t, s.At+s.For, size.Length)
		require.Contains(t, kindsByName, s.Kind)
		together := 0
		for _, other := range strikes[:i+1] {
			if other.At <= s.At && s.At < other.At+other.For {
				together++
			}
		}
		most = max(most, together)
	}
	require.Equal(t, size.AtOnce, most)
	for _, k := range kinds {
		assert.InDelta(t, len(strikes)/len(kinds), count[k.name], 1, k.name)
	}
	require.Len(t, kindsByName, len(kinds), "names are different")
}

func TestAScheduleDrawsOnlyTheKindsAskedFor(t *testing.T) {
	t.Parallel()
	only := []string{"follower's disk lost", "guest's mount is away"}
	count := make(map[string]int)
	for _, s := range Schedule(Size{Seed: 1, Length: time.Minute, AtOnce: 2, Term: 3 * time.Second, Only: only}) {
		count[s.Kind]++
	}
	require.Len(t, count, len(only))
	for _, name := range only {
		require.Positive(t, count[name], name)
	}
	require.Empty(t, Schedule(Size{Seed: 1, Length: time.Minute, AtOnce: 2, Term: 3 * time.Second, Only: []string{"no such kind"}}))
}

func TestCoverageCounts(t *testing.T) {
	t.Parallel()
	c := NewCoverage()
	c.note("leader killed", nil)
	c.note("leader killed", []string{MomentElection, "guest frozen"})
	covered, all := c.Pairs()
	require.Equal(t, 3, covered)
	require.Equal(t, len(kinds)*(len(Moments)+len(kinds)), all)
	require.Contains(t, c.String(), "leader killed")
	c.leaveOut("guest frozen")
	begun, left, pairs := c.Counted()
	require.Equal(t, map[string]int64{"leader killed": 2}, begun)
	require.Equal(t, map[string]int64{"guest frozen": 1}, left)
	require.Equal(t, map[string]map[string]int64{"leader killed": {MomentQuiet: 1, MomentElection: 1, "guest frozen": 1}}, pairs)
}

// TestMomentsFollowFromMetrics: what changes between two samples has happened just now, and nothing has while a daemon is met for the first time.
func TestMomentsFollowFromMetrics(t *testing.T) {
	t.Parallel()
	said := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, said) }))
	defer server.Close()
	m := &metrics{client: server.Client(), address: server.Listener.Addr().String(), last: sample{changed: make(map[string]time.Time)}}
	const expiry = "lockfs_certificate_expiry_timestamp_seconds"
	recently := func(samples ...string) (renewed, revoked bool) {
		clear(m.last.changed)
		m.last.values = nil
		for _, said = range samples {
			m.ask()
		}
		return m.recently(expiry), m.recently(leasedInodes)
	}
	renewed, revoked := recently(expiry+"{file=\"x\"} 7\n"+leasedInodes+" 3\n", expiry+"{file=\"x\"} 7\n"+leasedInodes+" 4\n")
	require.False(t, renewed)
	require.False(t, revoked, "more is leased than before")
	renewed, revoked = recently(expiry+"{file=\"x\"} 7\n"+leasedInodes+" 3\n", expiry+"{file=\"x\"} 9\n"+leasedInodes+" 2\n")
	require.True(t, renewed)
	require.True(t, revoked)
	_, revoked = recently(leasedInodes+" 3\n", "lockfs_raft_term 2\n")
	require.False(t, revoked, "it leads no more")
}
