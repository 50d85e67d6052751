package lease

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// asked has a mount ask a cache a question at a time.
func asked(c *Cache, question string, at time.Duration) Ticket {
	ticket, _ := c.Ask(here, question, at)
	return ticket
}

// held tells whether a cache answers a question at a time.
func held(c *Cache, question string, at time.Duration) bool {
	return c.Get(question, func() time.Duration { return at }) != nil
}

// lasts is for how long what was asked at 0 is held.
const lasts = 4 * Duration / 5

func TestAQuestionThatIsAskedTwiceIsLeased(t *testing.T) {
	c := NewCache()
	_, wants := c.Ask(here, "a", 0)
	require.False(t, wants, "for the first time")
	_, wants = c.Ask(here, "b", 0)
	require.False(t, wants, "another question")
	_, wants = c.Ask(here, "a", askedAge-1)
	require.True(t, wants)
	_, wants = c.Ask(here, "a", 2*askedAge-1)
	require.False(t, wants, "that was long ago")
	_, wants = c.Ask(here, "a", 2*askedAge)
	require.True(t, wants, "and that was not")
	_, wants = c.Ask(Holder{}, "a", 2*askedAge)
	require.False(t, wants, "without a session")
	c.Keep(asked(c, "a", 2*askedAge), 1, new(storepb.Result), file, 0, 0)
	require.True(t, held(c, "a", 2*askedAge+lasts-1))
	_, wants = c.Ask(here, "a", 3*askedAge+lasts-2)
	require.True(t, wants, "it was asked for while it was held, and that has lapsed")
	for i := range maxQuestions {
		c.Ask(here, fmt.Sprint(i), 0)
	}
	_, wants = c.Ask(here, "a", 2*askedAge)
	require.False(t, wants, "it does not remember all that was ever asked")
	require.LessOrEqual(t, len(c.asked), maxQuestions)
}

func TestAnAnswerIsHeldForALease(t *testing.T) {
	c, result := NewCache(), new(storepb.Result)
	require.True(t, c.Keep(asked(c, "a", 0), 1, result, file, 0, 0), "it has to be extended from now on")
	require.Same(t, result, c.Get("a", func() time.Duration { return lasts - 1 }))
	require.False(t, held(c, "a", lasts), "counted from when it was asked")
	require.False(t, held(c, "b", 0))

	require.False(t, c.Keep(asked(c, "b", 100), 1, result, nil, 0, 0), "it is being extended")
	require.True(t, held(c, "a", lasts+99), "one lease is for all")
	c.Extend(here, 1, 200, 0, 300)
	require.True(t, held(c, "a", lasts+199) && held(c, "b", lasts+199))
	require.False(t, held(c, "b", lasts+200))
	c.Extend(here, 1, 150, 0, 300)
	require.True(t, held(c, "a", lasts+199), "what was answered late takes nothing back")
	c.Extend(there, 1, 0, time.Hour, time.Hour)
	c.Extend(here, 2, 0, time.Hour, time.Hour)
	require.False(t, held(c, "a", lasts+200), "other leases")
}

// TestAHoldCountsNoMoreThanTheWait has the leader say that it has held a request for longer than the
// mount's clock has gone on: that has stood still, or what is said is wrong.
func TestAHoldCountsNoMoreThanTheWait(t *testing.T) {
	for _, said := range []time.Duration{0, Duration / 2, time.Hour, math.MaxInt64, -time.Hour, math.MinInt64} {
		c := NewCache()
		c.Keep(asked(c, "a", 0), 1, new(storepb.Result), file, 0, 0)
		c.Extend(here, 1, 100, said, 110)
		require.GreaterOrEqual(t, c.Remaining(here, 1, 110), lasts-110)
		require.LessOrEqual(t, c.Remaining(here, 1, 110), lasts)
		require.Equal(t, said >= Duration/2, held(c, "a", 110+lasts-1))
	}
}

func TestRemainingTimeOfALease(t *testing.T) {
	c := NewCache()
	require.Zero(t, c.Remaining(here, 0, 0))
	c.Keep(asked(c, "a", 100), 1, new(storepb.Result), file, 0, 0)
	require.Equal(t, lasts, c.Remaining(here, 1, 100))
	require.Equal(t, 1*time.Nanosecond, c.Remaining(here, 1, 99+lasts))
	require.Zero(t, c.Remaining(here, 1, 101+lasts))
	require.Zero(t, c.Remaining(there, 1, 100), "another's")
	require.Zero(t, c.Remaining(here, 2, 100), "another one")
	c.Clear()
	require.Zero(t, c.Remaining(here, 1, 100))
}

func TestAnAnswerMayEndBeforeItsLease(t *testing.T) {
	c := NewCache()
	c.Keep(asked(c, "short", 100), 1, new(storepb.Result), nil, 50, 0)
	c.Keep(asked(c, "long", 100), 1, new(storepb.Result), nil, time.Hour, 0)
	require.True(t, held(c, "short", 149))
	require.False(t, held(c, "short", 150))
	require.True(t, held(c, "long", lasts+99))
	require.False(t, held(c, "long", lasts+100))
}

func TestADroppedAnswerIsNotHeld(t *testing.T) {
	c := NewCache()
	c.Keep(asked(c, "a", 0), 1, new(storepb.Result), []ids.Inode{7, 8}, 0, 0)
	c.Keep(asked(c, "b", 0), 1, new(storepb.Result), []ids.Inode{8}, 0, 0)
	onItsWay := asked(c, "c", 0)
	c.Drop(7)
	require.False(t, held(c, "a", 1))
	require.True(t, held(c, "b", 1))
	c.Keep(onItsWay, 1, new(storepb.Result), []ids.Inode{9, 7}, 0, 0)
	require.False(t, held(c, "c", 1), "it may say what was before the drop")
	c.Keep(onItsWay, 1, new(storepb.Result), []ids.Inode{9}, 0, 0)
	require.True(t, held(c, "c", 1), "it says nothing of that")
	c.Keep(asked(c, "b", 0), 1, new(storepb.Result), []ids.Inode{9}, 0, 0)
	c.Drop(8)
	require.True(t, held(c, "b", 1), "what is kept now says nothing of that")
	c.Drop(9)
	require.False(t, held(c, "b", 1))
	require.Empty(t, c.byInode)
}

func TestGenerations(t *testing.T) {
	keep := func(c *Cache, holder Holder, question string, generation uint64) bool {
		ticket, _ := c.Ask(holder, question, 0)
		return c.Keep(ticket, generation, new(storepb.Result), file, 0, 0)
	}
	c := NewCache()
	require.True(t, keep(c, here, "a", 2))
	require.False(t, keep(c, here, "b", 1), "an older one")
	require.False(t, held(c, "b", 1))
	require.True(t, keep(c, here, "b", 3), "a newer one begins")
	require.False(t, held(c, "a", 1), "what was held in another is not promised in this one")
	require.True(t, held(c, "b", 1))

	_, generation := c.Clear()
	require.EqualValues(t, 3, generation)
	require.False(t, held(c, "b", 1))
	_, generation = c.Clear()
	require.Zero(t, generation, "nothing was held")
	keep(c, here, "b", 3)
	require.False(t, held(c, "b", 1), "one that was given back does not count any more")
	require.True(t, keep(c, here, "b", 4))
	c.Invalidate(here, 3)
	c.Invalidate(there, 4)
	require.True(t, held(c, "b", 1), "it has lost others")
	c.Invalidate(here, 4)
	require.False(t, held(c, "b", 1))
	c.Extend(here, 4, 0, 0, 0)
	keep(c, here, "b", 4)
	require.False(t, held(c, "b", 1))

	require.True(t, keep(c, here, "b", 5))
	require.True(t, keep(c, there, "c", 1), "another holder's generations are its own")
	require.False(t, held(c, "b", 1))
	require.True(t, held(c, "c", 1))
	require.False(t, keep(c, here, "b", 6), "that holder's time is over")
	require.True(t, held(c, "c", 1))
	holder, generation, isUsed := c.Lease(1)
	require.Equal(t, there, holder)
	require.EqualValues(t, 1, generation)
	require.True(t, isUsed)
}

func TestAnUnusedLeaseIsReleased(t *testing.T) {
	c := NewCache()
	_, _, isUsed := c.Lease(0)
	require.False(t, isUsed, "there is none")
	c.Keep(asked(c, "a", 0), 1, new(storepb.Result), file, 0, 0)
	_, _, isUsed = c.Lease(useAge - 1)
	require.True(t, isUsed)
	_, _, isUsed = c.Lease(useAge)
	require.False(t, isUsed)
	require.True(t, held(c, "a", 100))
	_, _, isUsed = c.Lease(useAge + 99)
	require.True(t, isUsed, "it was used since")

	c.Clear()
	c.Keep(asked(c, "a", useAge), 2, new(storepb.Result), file, 0, 3*useAge)
	_, _, isUsed = c.Lease(3 * useAge)
	require.True(t, isUsed, "an answer that took long is used, too")
}

func TestTheCacheIsBounded(t *testing.T) {
	c := NewCache()
	for i := range maxAnswers {
		c.Keep(asked(c, fmt.Sprint(i), 0), 1, new(storepb.Result), file, 0, 0)
		_, _, isUsed := c.Lease(0)
		require.Equal(t, i < maxAnswers-1, isUsed, "one that is full is given back, to begin anew")
	}
	require.True(t, held(c, fmt.Sprint(maxAnswers-1), 1))
	c.Keep(asked(c, "more", 0), 1, new(storepb.Result), file, 0, 0)
	require.False(t, held(c, "more", 1))
}
