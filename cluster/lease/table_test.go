package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
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
	generation, ok := table.Grant(to, file, at)
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
	require.Len(t, pending, 1)
	require.Empty(t, table.Of(1, []ids.Inode{8}), "other inodes go on")
	require.Empty(t, table.All(0), "what was applied before goes on")
	for holder, generation := range generations {
		require.False(t, pending.IsOver())
		inodes, number, _, known := table.Drops(holder, generation)
		require.True(t, known)
		require.Equal(t, file, inodes)
		table.Dropped(holder, generation, number)
	}
	require.True(t, pending.IsOver())
	require.Empty(t, table.All(1))
}

func TestALeaseIsNotExtendedWhileSomethingIsToBeDropped(t *testing.T) {
	table := leading()
	generation := give(t, table, here, 0)
	require.True(t, table.Extend(here, generation, Duration/2))
	table.Applied(1, file, Duration/2)
	pending := table.All(1)
	require.False(t, table.Extend(here, generation, Duration), "or a change could wait for ever")
	_, ok := table.Grant(here, []ids.Inode{8}, Duration)
	require.False(t, ok)
	table.Expire(Duration)
	require.False(t, pending.IsOver())
	table.Expire(Duration + Duration/2)
	require.True(t, pending.IsOver())
}

func TestWhoDidNotDropGetsNothingUntilHeIsHeardOf(t *testing.T) {
	table := leading()
	generation := give(t, table, here, 0)
	table.Applied(1, file, 0)
	table.Expire(Duration)
	_, ok := table.Grant(here, file, Duration)
	require.False(t, ok)
	_, _, _, known := table.Drops(here, generation)
	require.False(t, known)
	table.Heard(here)
	require.Greater(t, give(t, table, here, Duration), generation)
}

func TestWhatIsForetoldIsDroppedBeforeAndGrantedAfter(t *testing.T) {
	table := leading()
	generation := give(t, table, here, 0)
	over := table.Foretell(file)
	_, ok := table.Grant(there, file, 0)
	require.False(t, ok)
	inodes, number, _, _ := table.Drops(here, generation)
	require.Equal(t, file, inodes)
	table.Dropped(here, generation, number)
	table.Applied(1, file, 0)
	require.Empty(t, table.All(1), "nobody holds it any more")
	over()
	give(t, table, there, 0)
}

func TestAnExtensionDoesNotReviveWhatWasGivenBack(t *testing.T) {
	table := leading()
	generation := give(t, table, here, 0)
	table.Release(here, generation)
	require.False(t, table.Extend(here, generation, 0))
	table.Applied(1, file, 0)
	require.Empty(t, table.All(1))
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
