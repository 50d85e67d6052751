package harm

import (
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

func TestCoverageCounts(t *testing.T) {
	t.Parallel()
	c := NewCoverage()
	c.note("leader killed", nil)
	c.note("leader killed", []string{MomentElection, "guest frozen"})
	covered, all := c.Pairs()
	require.Equal(t, 3, covered)
	require.Equal(t, len(kinds)*(len(Moments)+len(kinds)), all)
	require.Contains(t, c.String(), "leader killed")
}
