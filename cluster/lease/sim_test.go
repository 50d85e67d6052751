package lease

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// world is a cluster and its mounts as far as leases go, with messages that arrive in any order, late or
// never. Values are numbers that rise, and live in inodes of which each is asked about by one question.
// Each mount has a clock that runs at a speed of its own, nearly a fifth slower than the leaders' at the
// least.
type world struct {
	t      *rapid.T
	now    time.Duration
	table  *Table
	term   ids.Term
	opens  time.Duration // when the present leader begins
	isOpen bool
	index  ids.Index
	values map[ids.Inode]uint64
	told   map[ids.Inode]uint64 // what somebody may know of
	mounts []*simMount
	word   time.Duration // when a majority has said last that the present leader leads
	stops  bool          // clocks of mounts may stand still, which may answer what is old then
	mail   []func()      // messages under way
	held   []heldBack
}

type simMount struct {
	*Cache
	world   *world
	speed   time.Duration // of its clock, in hundredths of the leaders'
	stood   time.Duration // for how long that did not go on
	holder  Holder
	dropped uint64 // see Table.Acknowledge
	of      uint64 // the generation in which it was
}

// heldBack is an answer that waits for changes to be settled.
type heldBack struct {
	pending Pending
	send    func()
}

func question(ino ids.Inode) string { return fmt.Sprint(ino) }

func (m *simMount) clock() time.Duration { return m.world.now*m.speed/100 - m.stood }

func (w *world) post(message func()) { w.mail = append(w.mail, message) }

// answer has something be sent once changes can be shown.
func (w *world) answer(pending Pending, send func()) {
	w.held = append(w.held, heldBack{pending, send})
	w.release()
}

func (w *world) release() {
	w.held = slices.DeleteFunc(w.held, func(h heldBack) bool {
		if h.pending.IsOver() {
			h.send()
			return true
		}
		return false
	})
}

// check has what a mount answers by itself be as good as the leader's word.
func (w *world) check(got *storepb.Result, ino ids.Inode) {
	if !w.stops {
		require.GreaterOrEqual(w.t, got.GetIndex(), w.told[ino], "inode %d is older than what others were told", ino)
	}
}

// read asks about an inode, as the mount does: what it holds, else the leader.
func (w *world) read(m *simMount, ino ids.Inode) {
	if got := m.Get(question(ino), m.clock); got != nil {
		w.check(got, ino)
		return
	}
	m.Ask(m.holder, question(ino), m.clock())
	ticket, wants := m.Ask(m.holder, question(ino), m.clock())
	require.True(w.t, wants)
	table, cache, holder := w.table, m.Cache, m.holder // of a process: what comes late for another one, it does not hear
	w.post(func() {
		if table != w.table || !w.isOpen {
			return // a deposed leader is confirmed by nobody, and a new one answers nothing yet
		}
		inodes := []ids.Inode{ino}
		generation, granted := table.Grant(Request{Holder: holder, Retired: ticket.Retired, Asked: ticket.Position}, inodes, w.now)
		w.word = w.now
		value := w.values[ino]
		w.answer(table.Of(w.index, inodes), func() {
			w.told[ino] = max(w.told[ino], value)
			w.post(func() {
				if granted {
					cache.Keep(ticket, generation, &storepb.Result{Index: value}, inodes, 0, m.clock())
				}
			})
		})
	})
}

// write changes an inode, and perhaps says so before.
func (w *world) write(ino ids.Inode, foretold bool) {
	over := func() {}
	table := w.table
	if foretold {
		over = table.RevokeAhead([]ids.Inode{ino})
	}
	w.post(func() {
		defer over()
		if table != w.table || !w.isOpen {
			return
		}
		w.index++
		w.values[ino]++
		value := w.values[ino]
		table.Applied(w.index, []ids.Inode{ino}, w.now)
		w.answer(table.Of(w.index, []ids.Inode{ino}), func() { w.told[ino] = max(w.told[ino], value) })
	})
}

// renew is one round of what keeps a mount's lease: the leader holds the request for as long as it likes,
// then confirms that it leads, and answers.
func (w *world) renew(m *simMount) {
	holder, generation, _ := m.Lease(m.clock())
	number, sent, table, cache := uint64(0), m.clock(), w.table, m.Cache
	if generation == m.of {
		number = m.dropped
	}
	w.post(func() {
		if table != w.table || !w.isOpen {
			return
		}
		table.NoteContact(holder)
		table.Acknowledge(holder, generation, number)
		w.release()
		came := w.now
		w.post(func() {
			began := w.now
			w.post(func() {
				confirmed := table == w.table && w.isOpen
				if confirmed {
					w.word = w.now
				}
				w.post(func() { // what is deposed after that goes by it all the same
					extended := confirmed && table.Extend(holder, generation, began)
					inodes, number, _, known := table.Revocations(holder, generation)
					w.post(func() {
						if cache == m.Cache {
							m.renewed(holder, generation, sent, began-came, known, extended, inodes, number)
						}
					})
				})
			})
		})
	})
}

// renewed is the answer to a renewal.
func (m *simMount) renewed(holder Holder, generation uint64, sent, held time.Duration, known, extended bool, inodes []ids.Inode, number uint64) {
	if !known {
		m.Invalidate(holder, generation)
		return
	}
	m.Drop(inodes...)
	if m.of != generation {
		m.of, m.dropped = generation, 0
	}
	m.dropped = max(m.dropped, number)
	if extended {
		m.Extend(holder, generation, sent, held, m.clock())
	}
}

func (w *world) giveBack(m *simMount) {
	holder, generation, _ := m.Lease(m.clock())
	m.Clear()
	table := w.table
	w.post(func() { table.Release(holder, generation); w.release() })
}

// succeed has another process go on with a mount's session. That all is given back is said by the one
// before, and may be heard late.
func (w *world) succeed(m *simMount) {
	w.giveBack(m)
	m.Cache, m.of, m.dropped = NewCache(), 0, 0
	m.holder.Client++
}

// elect makes another leader, which answers once a lease is over since a majority has given its last word
// to the one before.
func (w *world) elect() {
	w.term++
	w.table, w.isOpen, w.opens = NewTable(), false, w.word+Duration
	w.held = nil // what the deposed one held back is answered by the new one, when it is asked again
}

func (w *world) pass(d time.Duration) {
	w.now += d
	if !w.isOpen && w.now >= w.opens {
		w.isOpen = true
		w.table.Begin(w.term)
		for ino, value := range w.values {
			w.told[ino] = value // it shows all that was applied
		}
	}
	w.table.Expire(w.now)
	w.release()
}

// stop has a mount's clock stand still while those of others go on, as that of a virtual machine that is
// paused.
func (w *world) stop(m *simMount, d time.Duration) {
	before := m.clock()
	w.pass(d)
	m.stood += m.clock() - before
}

// misfortune is what happens rarely.
func (w *world) misfortune(m *simMount) {
	switch rapid.IntRange(0, 8).Draw(w.t, "misfortune") {
	case 0, 1, 2:
		if len(w.mail) > 0 {
			w.mail = w.mail[1:]
		}
	case 3, 4:
		w.giveBack(m)
	case 5, 6:
		w.pass(time.Duration(rapid.IntRange(100, 1500).Draw(w.t, "ms")) * time.Millisecond)
	case 7:
		w.elect()
	case 8:
		w.succeed(m)
	}
}

// TestNoReadIsOlderThanAnAcknowledgedChange plays mounts, writers and leaders against each other, with
// messages that arrive in any order, late or never.
func TestNoReadIsOlderThanAnAcknowledgedChange(t *testing.T) { play(t, false) }

// TestAClockThatStoodStill is the same with mounts whose clocks do. None may answer by itself for longer
// than for 4/5 of a lease after that.
func TestAClockThatStoodStill(t *testing.T) { play(t, true) }

func play(t *testing.T, stops bool) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, stops: stops, values: make(map[ids.Inode]uint64), told: make(map[ids.Inode]uint64)}
		w.elect()
		w.pass(Duration)
		for i := range 2 {
			w.mounts = append(w.mounts, &simMount{
				Cache: NewCache(), world: w, speed: time.Duration(rapid.IntRange(81, 120).Draw(t, "speed")), holder: Holder{Session: ids.Session(i + 1)},
			})
		}
		mount := func() *simMount { return w.mounts[rapid.IntRange(0, 1).Draw(t, "mount")] }
		inode := func() ids.Inode { return ids.Inode(rapid.IntRange(1, 2).Draw(t, "inode")) }
		for range rapid.IntRange(50, 400).Draw(t, "steps") {
			switch step := rapid.IntRange(0, 39).Draw(t, "step"); {
			case step < 6:
				w.read(mount(), inode())
			case step < 7:
				w.write(inode(), rapid.Bool().Draw(t, "foretold"))
			case step < 9:
				w.command(mount(), inode(), rapid.IntRange(1, 2).Draw(t, "times"))
			case step < 13:
				w.renew(mount())
			case step < 36:
				for n := rapid.IntRange(1, 4).Draw(t, "messages"); n > 0 && len(w.mail) > 0; n-- {
					i := rapid.IntRange(0, min(len(w.mail)-1, 5)).Draw(t, "message")
					message := w.mail[i]
					w.mail = slices.Delete(w.mail, i, i+1)
					message()
				}
			case step < 37 && w.stops:
				w.stop(mount(), time.Duration(rapid.IntRange(1, 500).Draw(t, "ms"))*time.Millisecond)
			case step < 39:
				w.pass(time.Duration(rapid.IntRange(1, 40).Draw(t, "ms")) * time.Millisecond)
			default:
				w.misfortune(mount())
			}
			for _, m := range w.mounts {
				require.LessOrEqual(t, m.until-m.clock(), 4*Duration/5)
				for ino := range ids.Inode(3) {
					if got := m.Get(question(ino), m.clock); got != nil {
						w.check(got, ino)
					}
				}
			}
		}
	})
}
