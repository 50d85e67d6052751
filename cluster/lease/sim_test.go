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

// world is a cluster and its mounts as far as leases go, with messages that arrive in any order, late or never. Values are numbers
// that rise, and live in inodes of which each is asked about by one question.
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
	mail   []func() // messages under way
	held   []heldBack
}

type simMount struct {
	*Cache
	holder  Holder
	dropped uint64 // see Table.Dropped
	of      uint64 // the generation in which it was
}

// heldBack is an answer that waits for changes to be settled.
type heldBack struct {
	pending Pending
	send    func()
}

func question(ino ids.Inode) string { return fmt.Sprint(ino) }

func (w *world) clock() time.Duration { return w.now }

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

// read asks about an inode, as the mount does: what it holds, else the leader.
func (w *world) read(m *simMount, ino ids.Inode) {
	if got := m.Get(question(ino), w.clock); got != nil {
		require.GreaterOrEqual(w.t, got.GetIndex(), w.told[ino], "inode %d is older than what others were told", ino)
		return
	}
	m.Ask(m.holder, question(ino), w.now)
	ticket, wants := m.Ask(m.holder, question(ino), w.now)
	require.True(w.t, wants)
	table := w.table
	w.post(func() {
		if table != w.table || !w.isOpen {
			return // a deposed leader is confirmed by nobody, and a new one answers nothing yet
		}
		inodes := []ids.Inode{ino}
		generation, granted := table.Grant(m.holder, inodes, w.now)
		value := w.values[ino]
		w.answer(table.Of(w.index, inodes), func() {
			w.told[ino] = max(w.told[ino], value)
			w.post(func() {
				if granted {
					m.Keep(ticket, generation, &storepb.Result{Index: value}, inodes, 0)
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
		over = table.Foretell([]ids.Inode{ino})
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

// renew is one round of what keeps a mount's lease.
func (w *world) renew(m *simMount) {
	holder, generation, _ := m.Lease(w.now)
	number, sent, table := uint64(0), w.now, w.table
	if generation == m.of {
		number = m.dropped
	}
	w.post(func() {
		if table != w.table || !w.isOpen {
			return
		}
		table.Heard(holder)
		table.Dropped(holder, generation, number)
		extended := table.Extend(holder, generation, w.now)
		inodes, number, _, known := table.Drops(holder, generation)
		w.release()
		w.post(func() {
			if !known {
				m.Lose(holder, generation)
				return
			}
			m.Drop(inodes...)
			if m.of != generation {
				m.of, m.dropped = generation, 0
			}
			m.dropped = max(m.dropped, number)
			if extended {
				m.Extend(holder, generation, sent)
			}
		})
	})
}

func (w *world) giveBack(m *simMount) {
	holder, generation, _ := m.Lease(w.now)
	m.Clear()
	table := w.table
	w.post(func() { table.Release(holder, generation); w.release() })
}

// succeed has another process go on with a mount's session. That all is given back is said by the one before, and may be heard late.
func (w *world) succeed(m *simMount) {
	w.giveBack(m)
	m.Cache, m.of, m.dropped = NewCache(), 0, 0
	m.holder.Client++
}

// elect makes another leader, which answers once a lease is over since now.
func (w *world) elect() {
	w.term++
	w.table, w.isOpen, w.opens = NewTable(), false, w.now+Duration
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

// TestNobodyReadsWhatOthersKnowToHaveChanged plays mounts, writers and leaders against each other, with messages that arrive in any
// order, late or never.
func TestNobodyReadsWhatOthersKnowToHaveChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, values: make(map[ids.Inode]uint64), told: make(map[ids.Inode]uint64)}
		w.elect()
		w.pass(Duration)
		for i := range 2 {
			w.mounts = append(w.mounts, &simMount{Cache: NewCache(), holder: Holder{Session: ids.Session(i + 1)}})
		}
		mount := func() *simMount { return w.mounts[rapid.IntRange(0, 1).Draw(t, "mount")] }
		inode := func() ids.Inode { return ids.Inode(rapid.IntRange(1, 2).Draw(t, "inode")) }
		for range rapid.IntRange(50, 400).Draw(t, "steps") {
			switch step := rapid.IntRange(0, 39).Draw(t, "step"); {
			case step < 7:
				w.read(mount(), inode())
			case step < 10:
				w.write(inode(), rapid.Bool().Draw(t, "foretold"))
			case step < 16:
				w.renew(mount())
			case step < 36:
				if len(w.mail) > 0 {
					i := rapid.IntRange(0, min(len(w.mail)-1, 5)).Draw(t, "message")
					message := w.mail[i]
					w.mail = slices.Delete(w.mail, i, i+1)
					message()
				}
			case step < 39:
				w.pass(time.Duration(rapid.IntRange(1, 40).Draw(t, "ms")) * time.Millisecond)
			default:
				w.misfortune(mount())
			}
			for _, m := range w.mounts { // whatever they hold is as good as the leader's word
				for ino := range ids.Inode(3) {
					if got := m.Get(question(ino), w.clock); got != nil {
						require.GreaterOrEqual(t, got.GetIndex(), w.told[ino], "inode %d is older than what others were told", ino)
					}
				}
			}
		}
	})
}
