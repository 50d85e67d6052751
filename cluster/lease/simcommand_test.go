package lease

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// simCommand is one of a mount, which asks about all inodes with it.
type simCommand struct {
	world  *world
	table  *Table
	cache  *Cache
	by     Request
	ticket Ticket
	clock  func() time.Duration // the mount's
	ino    ids.Inode
	isDone bool // at most once, however often it comes
}

// simAnswer is one of those that go with a command.
type simAnswer struct {
	ino        ids.Inode
	value      uint64
	generation uint64
}

// command has a mount change an inode, with a message that comes so often, at any time.
func (w *world) command(m *simMount, ino ids.Inode, times int) {
	ticket, _ := m.Change(m.holder, m.clock(), ino)
	c := &simCommand{
		world: w, table: w.table, cache: m.Cache, ticket: ticket, clock: m.clock, ino: ino,
		by: Request{Holder: m.holder, Retired: ticket.Retired, Asked: ticket.Position},
	}
	for range times {
		w.post(c.come)
	}
}

func (c *simCommand) leads() bool { return c.table == c.world.table && c.world.isOpen }

// come is when the leader hears of it.
func (c *simCommand) come() {
	if !c.leads() {
		return
	}
	w, came := c.world, c.world.now
	c.table.Dropped(c.by.Holder, c.by.Asked, []ids.Inode{c.ino}, came)
	w.release()
	over := c.table.RevokeAhead([]ids.Inode{c.ino})
	w.post(func() {
		defer over()
		if !c.leads() {
			return
		}
		w.word = max(w.word, came) // a voter may have stored it right then
		w.index++
		if c.isDone {
			w.answer(c.table.All(w.index), func() { w.post(func() { c.follow(came) }) })
			return
		}
		c.isDone = true
		w.values[c.ino]++
		value := w.values[c.ino]
		c.table.Applied(w.index, []ids.Inode{c.ino}, w.now)
		w.answer(c.table.Of(w.index, []ids.Inode{c.ino}), func() {
			w.told[c.ino] = max(w.told[c.ino], value)
			w.post(func() { c.follow(came) })
		})
	})
}

// follow is when the leader reads what it answers with the command, which came at a time.
func (c *simCommand) follow(came time.Duration) {
	w := c.world
	if !c.leads() {
		return
	}
	var answers []simAnswer
	for ino := range ids.Inode(3) {
		if !c.table.Of(w.index, []ids.Inode{ino}).IsOver() {
			continue
		}
		if generation, granted := c.table.Grant(c.by, []ids.Inode{ino}, came); granted {
			w.told[ino] = max(w.told[ino], w.values[ino])
			answers = append(answers, simAnswer{ino, w.values[ino], generation})
		}
	}
	w.post(func() {
		for _, a := range answers {
			result := &storepb.Result{Index: a.value}
			c.cache.Keep(c.ticket.For(question(a.ino)), a.generation, result, []ids.Inode{a.ino}, 0, c.clock())
		}
	})
}

// TestAChangeDoesNotWaitForMountsThatAnswer plays without losses: once all messages have come, and each
// mount was asked what it has dropped, nobody is waited for.
func TestAChangeDoesNotWaitForMountsThatAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, values: make(map[ids.Inode]uint64), told: make(map[ids.Inode]uint64)}
		w.elect()
		w.pass(Duration)
		for i := range 2 {
			w.mounts = append(w.mounts, &simMount{Cache: NewCache(), world: w, speed: 100, holder: Holder{Session: ids.Session(i + 1)}})
		}
		mount := func() *simMount { return w.mounts[rapid.IntRange(0, 1).Draw(t, "mount")] }
		inode := func() ids.Inode { return ids.Inode(rapid.IntRange(1, 2).Draw(t, "inode")) }
		deliver := func(i int) {
			message := w.mail[i]
			w.mail = slices.Delete(w.mail, i, i+1)
			message()
		}
		drain := func() {
			for len(w.mail) > 0 {
				deliver(0)
			}
		}
		for range rapid.IntRange(10, 100).Draw(t, "steps") {
			switch step := rapid.IntRange(0, 19).Draw(t, "step"); {
			case step < 3:
				w.read(mount(), inode())
			case step < 7:
				w.command(mount(), inode(), rapid.IntRange(1, 2).Draw(t, "times"))
			case step < 9:
				w.renew(mount())
			case step == 9:
				w.giveBack(mount())
			case len(w.mail) > 0:
				deliver(rapid.IntRange(0, min(len(w.mail)-1, 5)).Draw(t, "message"))
			}
		}
		drain()
		for range 6 { // to hear what to drop, and to say that it is, which others may wait for who then hear of a lease
			for _, m := range w.mounts {
				w.renew(m)
				drain()
			}
		}
		require.Zero(t, w.table.changes.Len())
		require.Empty(t, w.held)
		require.Empty(t, w.table.revokedAhead)
	})
}
