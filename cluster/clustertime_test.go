package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// handClocks are a host's clocks as the test sets them.
type handClocks struct{ reading }

func (h *handClocks) read() reading { return h.reading }

// pass moves both clocks on.
func (h *handClocks) pass(d time.Duration) {
	h.mono += d
	h.wall += int64(d)
}

func newHandClocks() (*handClocks, *clock) {
	hand := &handClocks{reading{wall: 1_700_000_000_000_000_000, mono: time.Minute}}
	return hand, newClock(hand.read)
}

func TestClockOneWrongAmongThreeMovesNothing(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{time.Hour, -time.Hour} {
		hand, c := newHandClocks()
		c.setPeer("b", hand.wall)
		c.setPeer("c", hand.wall+int64(wrong))
		c.start(0)
		require.Equal(t, hand.wall, c.Now(), "a peer is wrong by %v", wrong)

		hand, c = newHandClocks()
		right := hand.wall
		hand.wall += int64(wrong)
		c.setPeer("b", right)
		c.setPeer("c", right)
		c.start(0)
		require.Equal(t, right, c.Now(), "the leader is wrong by %v", wrong)
	}
}

func TestClockStepOfTheLeadersWallClockMovesNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		hand, c := newHandClocks()
		right := hand.wall
		c.setPeer("b", right)
		c.setPeer("c", right)
		c.start(0)
		hand.wall += int64(step)
		c.setPeer("b", right)
		require.Equal(t, right, c.Now(), "stepped by %v", step)
	}
}

func TestClockOfTwoTakesTheLater(t *testing.T) {
	t.Parallel()
	hand, c := newHandClocks()
	c.setPeer("b", hand.wall+int64(time.Hour))
	c.start(0)
	require.Equal(t, hand.wall, c.Now())
}

func TestClockOfTwoLeavesOutTheOneThatIsFarBehind(t *testing.T) {
	t.Parallel()
	hand, c := newHandClocks()
	c.setPeer("b", hand.wall-int64(time.Hour))
	c.start(hand.wall - int64(10*time.Minute)) // the last command is some time ago
	require.Equal(t, hand.wall, c.Now())
}

// TestClockOfTwoTakesTheEarlierThoughItIsLate: only one that is far behind is surely wrong.
func TestClockOfTwoTakesTheEarlierThoughItIsLate(t *testing.T) {
	t.Parallel()
	hand, c := newHandClocks()
	last := hand.wall
	c.setPeer("b", hand.wall-int64(lateness/2))
	c.start(last)
	hand.pass(10 * time.Second)
	require.Equal(t, last+int64(5*time.Second), c.Now(), "at half speed until b has caught up")
}

func TestClockOffsets(t *testing.T) {
	t.Parallel()
	hand, c := newHandClocks()
	c.setPeer("b", hand.wall-int64(time.Hour))
	c.setPeer("c", hand.wall+int64(time.Minute))
	c.start(0)
	hand.pass(time.Second)
	require.Equal(t, map[string]time.Duration{"a": 0, "b": -time.Hour, "c": time.Minute}, c.offsets("a"))
	hand.wall += int64(time.Second)
	require.Equal(t, time.Second, c.offsets("a")["a"])
}

func TestClockAheadRunsAtHalfSpeed(t *testing.T) {
	t.Parallel()
	hand, c := newHandClocks()
	last := hand.wall + int64(10*time.Second)
	c.start(last)
	require.Equal(t, last, c.Now())
	hand.pass(4 * time.Second)
	require.Equal(t, last+int64(2*time.Second), c.Now())
	hand.pass(26 * time.Second)
	require.Equal(t, hand.wall, c.Now(), "caught up after twice the difference")
}

func TestClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hand, c := newHandClocks()
		hours := rapid.Int64Range(-int64(2*time.Hour), int64(2*time.Hour))
		c.start(hand.wall + hours.Draw(t, "last stamp"))
		last := c.Now()
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				hand.pass(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "elapsed")))
			case 1:
				voter := rapid.SampledFrom([]string{"b", "c", "d"}).Draw(t, "voter")
				c.setPeer(voter, hand.wall+hours.Draw(t, "difference"))
			case 2:
				hand.wall += hours.Draw(t, "step of the wall clock")
			case 3:
				c.keepOnly([]string{"b"})
			}
			now := c.Now()
			if now < last {
				t.Fatalf("went back by %v", time.Duration(last-now))
			}
			last = now
		}
	})
}
