package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func TestACommandDropsWhatItChanges(t *testing.T) {
	c := NewCache()
	c.Keep(asked(c, "a", 0), 1, new(storepb.Result), []ids.Inode{7, 8}, 0, 0)
	c.Keep(asked(c, "b", 0), 1, new(storepb.Result), []ids.Inode{7}, 0, 0)
	c.Keep(asked(c, "c", 0), 1, new(storepb.Result), []ids.Inode{9}, 0, 0)
	require.True(t, held(c, "a", 1) && held(c, "c", 1))
	before := asked(c, "d", 0)
	ticket, again := c.Change(here, 2, 7, 8)
	require.Equal(t, []string{"a"}, again, "what nobody has used nobody needs")
	require.EqualValues(t, 2, ticket.Position)
	require.False(t, held(c, "a", 2) || held(c, "b", 2))
	require.True(t, held(c, "c", 2))
	c.Keep(before, 1, new(storepb.Result), []ids.Inode{8}, 0, 2)
	require.False(t, held(c, "d", 2), "it was asked before")
	c.Keep(asked(c, "d", 2), 1, new(storepb.Result), []ids.Inode{8}, 0, 2)
	require.True(t, held(c, "d", 2), "it was asked after that")

	other, _ := c.Change(here, 2, 8)
	c.Keep(ticket.For("a"), 1, new(storepb.Result), []ids.Inode{7, 8}, 0, 3)
	c.Keep(ticket.For("b"), 1, new(storepb.Result), []ids.Inode{7}, 0, 3)
	require.False(t, held(c, "a", 3), "another command changes it")
	require.True(t, held(c, "b", 3))
	require.True(t, held(c, "b", 2+lasts-1))
	require.False(t, held(c, "b", 2+lasts), "counted from when the command was sent")
	c.Keep(other.For("a"), 1, new(storepb.Result), []ids.Inode{7, 8}, 0, 3)
	require.True(t, held(c, "a", 3))
}

// TestAForgottenInodeCountsAsDropped has more be dropped than a cache remembers.
func TestAForgottenInodeCountsAsDropped(t *testing.T) {
	c := NewCache()
	ticket := asked(c, "a", 0)
	c.Drop(make([]ids.Inode, maxDropsLogged)...)
	c.Keep(ticket, 1, new(storepb.Result), file, 0, 0)
	require.True(t, held(c, "a", 1))
	c.Drop(8)
	c.Keep(ticket.For("b"), 1, new(storepb.Result), file, 0, 0)
	require.False(t, held(c, "b", 1))
}

// TestAGenerationIsKnownWithoutAnswers as the leader waits for it, too.
func TestAGenerationIsKnownWithoutAnswers(t *testing.T) {
	c := NewCache()
	ticket := asked(c, "a", 0)
	c.Drop(7)
	require.True(t, c.Keep(ticket, 1, new(storepb.Result), file, 0, 0), "somebody has to say that it is not used")
	require.False(t, held(c, "a", 1))
	holder, generation, isUsed := c.Lease(1)
	require.Equal(t, here, holder)
	require.EqualValues(t, 1, generation)
	require.False(t, isUsed)
	require.False(t, c.Keep(ticket, 1, new(storepb.Result), file, 0, 0), "that is being done")
	cleared, generation := c.Clear()
	require.Equal(t, here, cleared)
	require.EqualValues(t, 1, generation)
	require.False(t, c.Keep(ticket, 1, new(storepb.Result), file, 0, 0))
}

func TestACommandOnItsWayUsesTheLease(t *testing.T) {
	c := NewCache()
	c.Keep(asked(c, "a", 0), 1, new(storepb.Result), file, 0, 0)
	isUsed := func(at time.Duration) bool {
		_, _, isUsed := c.Lease(at)
		return isUsed
	}
	c.Change(here, 0, 7)
	require.False(t, isUsed(0))
	c.Changing()
	require.True(t, isUsed(0), "though nothing is held")
	require.True(t, isUsed(time.Hour))
	c.Invalidate(here, 1)
	require.False(t, isUsed(0), "there is none to extend any more")
	c.Changed()
	c.Keep(asked(c, "a", 0), 2, new(storepb.Result), file, 0, 0)
	c.Drop(7)
	require.False(t, isUsed(0))
}

// TestAnUnusedPrefetchIsReleased soon, or each command would have a lease be extended several times.
func TestAnUnusedPrefetchIsReleased(t *testing.T) {
	const came = time.Hour
	c := NewCache()
	ticket, _ := c.Change(here, came, 7)
	require.True(t, c.Keep(ticket.For("a"), 1, new(storepb.Result), file, 0, came))
	_, _, isUsed := c.Lease(came + prefetchAge - 1)
	require.True(t, isUsed)
	_, _, isUsed = c.Lease(came + prefetchAge)
	require.False(t, isUsed)
	require.True(t, held(c, "a", came+1))
	_, _, isUsed = c.Lease(came + useAge)
	require.True(t, isUsed, "somebody has asked for it")
}

func TestADroppedInodeIsNotWaitedFor(t *testing.T) {
	table := leading()
	grant := func(position uint64) (generation uint64) {
		generation, granted := table.Grant(Request{Holder: here, Asked: position}, file, 0)
		require.True(t, granted)
		return generation
	}
	waits := func(index ids.Index) bool {
		table.Applied(index, file, 0)
		return !table.All(index).IsOver()
	}
	grant(4)
	table.Dropped(here, 5, file, 0)
	require.False(t, waits(1))

	grant(5)
	table.Dropped(here, 5, file, 0)
	require.True(t, waits(2), "it was asked for after that")
	table.Dropped(here, 6, file, 0)
	require.False(t, table.All(2).IsOver(), "what it is asked to drop it says itself")
	generation := table.byID[here].generation
	_, number, _, _ := table.Revocations(here, generation)
	table.Acknowledge(here, generation, number)
	require.True(t, table.All(2).IsOver())

	grant(7)
	grant(6)
	table.Dropped(here, 7, file, 0)
	require.True(t, waits(3), "what was asked for last counts, whichever came last")
}

func TestSoleHolder(t *testing.T) {
	table := leading()
	table.Dropped(here, 1, file, 1)
	table.Dropped(here, 2, file, 2)
	require.True(t, table.IsSoleHolder(here, file, 2))
	require.False(t, table.IsSoleHolder(there, file, 1+QuietPeriod), "another one has just changed it")
	require.True(t, table.IsSoleHolder(there, file, 2+QuietPeriod))
	require.True(t, table.IsSoleHolder(there, []ids.Inode{8}, 2))
	table.Dropped(there, 1, file, 3)
	require.False(t, table.IsSoleHolder(there, file, 1+QuietPeriod), "another one had")
	table.Dropped(here, 3, file, 4)
	require.False(t, table.IsSoleHolder(here, file, 2+QuietPeriod), "they take turns")
	require.True(t, table.IsSoleHolder(here, file, 3+QuietPeriod))

	generation := give(t, table, there, Duration)
	require.False(t, table.IsSoleHolder(here, file, Duration))
	require.True(t, table.IsSoleHolder(there, file, Duration))
	table.Dropped(here, 3, file, Duration)
	table.Release(there, generation)
	require.False(t, table.IsSoleHolder(here, file, Duration+QuietPeriod-1), "another one has held it")
	require.True(t, table.IsSoleHolder(here, file, Duration+QuietPeriod))
	for ino := range ids.Inode(2 * maxChangers) {
		table.Dropped(here, 0, []ids.Inode{ino}, 0)
	}
	require.LessOrEqual(t, len(table.changers), maxChangers)
}

func TestQuestionsAboutACreatedInode(t *testing.T) {
	name := &storepb.Observation{Parent: 1, Name: []byte("lock"), Token: 3}
	result := &storepb.Result{Attr: &storepb.Attr{Ino: 9}, Observations: []*storepb.Observation{name, {Parent: 1}}}
	getAttr := func(ino uint64) *storepb.Query {
		return &storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: ino}}}
	}
	require.EqualValues(t, 9, ForCreated(getAttr(0), result).GetGetAttr().GetIno())
	require.EqualValues(t, 8, ForCreated(getAttr(8), result).GetGetAttr().GetIno())
	question := &storepb.Query{Query: &storepb.Query_Read{Read: new(storepb.Read)}}
	read := ForCreated(question, result).GetRead()
	require.EqualValues(t, 9, read.GetIno())
	require.Same(t, name, read.GetName())
	require.Zero(t, question.GetRead().GetIno(), "who has asked it has it still")
	require.Nil(t, ForCreated(question, new(storepb.Result)).GetRead().GetName())
}
