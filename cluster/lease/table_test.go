package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

var (
	here  = Holder{Session: 1}
	there = Holder{Session: 2}
)

var file = []ids.Inode{7}

func leading() *Table {
	t := NewTable()
	t.Begin(1)
	return t
}

// give grants a mount the file at a time, which has to work.
func give(t *testing.T, table *Table, to Holder, at time.Duration) (generation uint64) {
	t.Helper()
	generation, ok := table.Grant(Request{Holder: to}, file, at)
	require.True(t, ok)
	return generation
}

func TestAChangeIsPendingUntilAllHoldersHaveDropped(t *testing.T) {
	const mounts = 1000
	table := leading()
	generations := make(map[Holder]uint64)
	for session := range ids.Session(mounts) {
		holder := Holder{Session: session + 1}
		generations[holder] = give(t, table, holder, 0)
	}
	table.Applied(1, file, 0)
	pending := table.Of(1, file)
	require.False(t, pending.IsOver())
	require.True(t, table.Of(1, []ids.Inode{8}).IsOver(), "other inodes go on")
	require.True(t, table.All(0).IsOver(), "what was applied before goes on")
	for holder, generation := range generations {
		require.False(t, pending.IsOver())
		inodes, number, _, known := table.Revocations(holder, generation)
		require.True(t, known)
		require.Equal(t, file, inodes)
		table.Acknowledge(holder, generation, number)
	}
	require.True(t, pending.IsOver())
	require.True(t, table.All(1).IsOver())
}

func TestALeaseIsNotExtendedWhileSomethingIsToBeDropped(t *testing.T) {
	table := leading()
	generation := give(t, table, here, 0)
	require.True(t, table.Extend(here, generation, Duration/2))
	table.Applied(1, file, Duration/2)
	pending := table.All(1)
	require.False(t, table.Extend(here, generation, Duration), "or a change could wait for ever")
	_, ok := table.Grant(Request{Holder: here}, []ids.Inode{8}, Duration)
	require.False(t, ok)
	table.Expire(Duration)
	require.False(t, pending.IsOver())
	table.Expire(Duration + Duration/2)
	require.True(t, pending.IsOver())
}

// TestAMountsLeaseIsOverBeforeTheLeaders for however long the leader holds a renewal, and however much
// slower the mount's clock is than the leader's, but for a fifth.
func TestAMountsLeaseIsOverBeforeTheLeaders(t *testing.T) {
	const slowest = 81 // hundredths
	for held := time.Duration(0); held < 3*Duration; held += Duration / 20 {
		table, cache := leading(), NewCache()
		generation := give(t, table, here, 0)
		ticket, _ := cache.Ask(here, "7", 0)
		require.True(t, cache.Keep(ticket, generation, new(storepb.Result), file, 0, 0))
		require.True(t, table.Extend(here, generation, held), "of a request that was sent, and came, at 0")
		cache.Extend(here, generation, 0, held, held)
		atEnd := func() time.Duration { return (held + Duration) * slowest / 100 }
		require.Nil(t, cache.Get("7", atEnd), "held for %v", held)
		require.NotNil(t, cache.Get("7", func() time.Duration { return (held + Duration) * slowest / 103 }), "held for %v", held)
	}
}

func TestAMountThatDidNotDropGetsNothingUntilItsNextContact(t *testing.T) {
	table := leading()
	generation := give(t, table, here, 0)
	table.Applied(1, file, 0)
	table.Expire(Duration)
	_, ok := table.Grant(Request{Holder: here}, file, Duration)
	require.False(t, ok)
	_, _, _, known := table.Revocations(here, generation)
	require.False(t, known)
	table.NoteContact(here)
	require.Greater(t, give(t, table, here, Duration), generation)
}

func TestRevokeAheadDropsBeforeAndGrantsAfter(t *testing.T) {
	table := leading()
	generation := give(t, table, here, 0)
	over := table.RevokeAhead(file)
	_, ok := table.Grant(Request{Holder: there}, file, 0)
	require.False(t, ok)
	inodes, number, _, _ := table.Revocations(here, generation)
	require.Equal(t, file, inodes)
	table.Acknowledge(here, generation, number)
	table.Applied(1, file, 0)
	require.True(t, table.All(1).IsOver(), "nobody holds it any more")
	over()
	give(t, table, there, 0)
}

func TestAnExtensionDoesNotReviveAReleasedLease(t *testing.T) {
	table := leading()
	generation := give(t, table, here, 0)
	table.Release(here, generation)
	require.False(t, table.Extend(here, generation, 0))
	table.Applied(1, file, 0)
	require.True(t, table.All(1).IsOver())
	again := give(t, table, here, 0)
	table.Release(here, generation)
	require.True(t, table.Extend(here, again, 0), "what comes late is of an earlier generation")
}

func TestAwaitEndsWithTheLastLease(t *testing.T) {
	table := leading()
	give(t, table, here, 0)
	give(t, table, there, Duration/4)
	table.Applied(1, file, Duration/4)
	began := time.Now()
	clock := func() time.Duration { return Duration + time.Since(began) }
	require.NoError(t, table.Await(t.Context(), table.All(1), clock))
	require.GreaterOrEqual(t, time.Since(began), Duration/4)
	holders, inodes := table.Held()
	require.Zero(t, holders)
	require.Zero(t, inodes)
}

// TestAMountThatGaveALeaseUpGetsAnother has the word that it did be lost.
func TestAMountThatGaveALeaseUpGetsAnother(t *testing.T) {
	table, cache := leading(), NewCache()
	keep := func(at time.Duration) (held bool) {
		ticket := asked(cache, "7", at)
		generation, granted := table.Grant(Request{Holder: here, Retired: ticket.Retired}, file, at)
		require.True(t, granted)
		cache.Keep(ticket, generation, new(storepb.Result), file, 0, 0)
		return cache.Get("7", func() time.Duration { return at }) != nil
	}
	require.True(t, keep(0))
	table.Applied(1, []ids.Inode{8}, 0)
	cache.Clear()
	require.True(t, keep(1), "of a new generation")
	table.Applied(2, file, 1)
	cache.Clear()
	require.True(t, keep(2), "what it was asked to drop it holds no more")
	require.True(t, table.All(2).IsOver())
	require.Zero(t, mustAsk(cache, there).Retired, "another holder's generations are its own")
}

func mustAsk(c *Cache, holder Holder) Ticket {
	ticket, _ := c.Ask(holder, "7", 0)
	return ticket
}

func TestAnExpiredLeaseIsNotContinued(t *testing.T) {
	table := leading()
	first := give(t, table, here, 0)
	require.Equal(t, first, give(t, table, here, Duration-1))
	second := give(t, table, here, 2*Duration)
	require.Greater(t, second, first)
	require.False(t, table.Extend(here, first, 2*Duration))
	require.True(t, table.Extend(here, second, 2*Duration))

	table.Applied(1, file, 2*Duration)
	_, granted := table.Grant(Request{Holder: here}, file, 3*Duration)
	require.False(t, granted, "it did not drop what it was asked to")
	require.True(t, table.All(1).IsOver(), "and nobody waits for it any more")
}

// TestANotifiedHolderIsNotifiedAgain has a mount lose its lease and get another one before somebody looks
// who is to be told.
func TestANotifiedHolderIsNotifiedAgain(t *testing.T) {
	table := leading()
	first := give(t, table, here, 0)
	table.Applied(1, file, 0)
	table.Release(here, first)
	second := give(t, table, here, 0)
	table.Applied(2, file, 0)
	require.Len(t, table.News(), 1)
	require.Contains(t, table.NotifiedHolders(), here)
	require.Empty(t, table.NotifiedHolders())
	inodes, number, _, known := table.Revocations(here, second)
	require.True(t, known)
	require.Equal(t, file, inodes)
	table.Acknowledge(here, second, number)
	give(t, table, here, 0)
	<-table.News()
	table.Applied(3, file, 0)
	require.Len(t, table.News(), 1)
	require.Equal(t, []Holder{here}, table.NotifiedHolders())
}
