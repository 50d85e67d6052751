package lease

import (
	"slices"
	"sync"
	"time"

	"lockfs/raftstore/ids"
)

// Table is what a leader has promised. Times are those of its monotonic clock.
type Table struct {
	mu           sync.Mutex
	open         bool     // it leads, and nothing that others have promised counts any more
	term         ids.Term // in which it was begun; 0: none
	stopped      bool     // see Resign
	generation   uint64
	byID         map[Holder]*holder
	holders      map[ids.Inode]map[*holder]bool
	revokedAhead map[ids.Inode]int        // how many commands are on their way that touch it
	changers     map[ids.Inode]changer    // who has said last that it would change something
	readCounts   map[reader]readCount     // who has asked how often about what has changed just now
	changes      []*change                // that wait for somebody, in the order of their indexes
	lastExpiry   time.Duration            // when leases were last looked for that are over
	blocked      map[Holder]time.Duration // until when one gets nothing that did not drop what it was asked to
	notified     []Holder                 // see Told
	news         chan struct{}            // holds one
}

// NewTable makes a table of a node that does not lead.
func NewTable() *Table {
	t := &Table{news: make(chan struct{}, 1)}
	t.clear()
	return t
}

func (t *Table) clear() {
	t.byID = make(map[Holder]*holder)
	t.holders = make(map[ids.Inode]map[*holder]bool)
	t.revokedAhead = make(map[ids.Inode]int)
	t.changers = make(map[ids.Inode]changer)
	t.blocked = make(map[Holder]time.Duration)
	t.readCounts = make(map[reader]readCount)
}

// Begin is called when a node leads in a term, and all promises of others, and its own of earlier terms, are over.
func (t *Table) Begin(term ids.Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.byID {
		t.lose(h)
	}
	t.clear()
	t.open, t.stopped, t.term, t.generation = true, false, term, uint64(term)<<32
}

// Term returns the last term in which the table was begun; 0: none.
func (t *Table) Term() ids.Term {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.term
}

// End is called when a node leads no more: it promises nothing more. What it has promised it still waits for.
func (t *Table) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = false
}

// Grant promises a mount, whose request came just before now, that it is asked before any of the inodes changes. ok is false if it is
// not promised that. Whoever calls it reads what it will answer after that, and before anything else is applied.
func (t *Table) Grant(to Request, inodes []ids.Inode, now time.Duration) (generation uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open || to.Session == 0 {
		return 0, false
	}
	h := t.byID[to.Holder]
	switch { // what is over is not gone on with, or the mount would be given what it does not keep
	case h == nil:
	case h.generation <= to.Retired:
		t.lose(h)
		h = nil
	case now >= h.until:
		t.end(h, now)
		h = nil
	}
	if now < t.blocked[to.Holder] {
		return 0, false
	}
	for _, ino := range inodes {
		if t.revokedAhead[ino] > 0 {
			return 0, false
		}
	}
	switch {
	case h == nil:
		t.generation++
		h = &holder{id: to.Holder, generation: t.generation, holds: make(map[ids.Inode]holding)}
		t.byID[to.Holder] = h
	case h.mustDrop() || len(h.holds) >= maxHeld:
		return 0, false
	}
	h.until = max(h.until, now+Duration)
	for _, ino := range inodes {
		h.holds[ino] = holding{asked: max(h.holds[ino].asked, to.Asked)}
		if t.holders[ino] == nil {
			t.holders[ino] = make(map[*holder]bool)
		}
		t.holders[ino][h] = true
	}
	return h.generation, true
}

// Extend extends the lease of a mount, which has asked for that, with what began to be confirmed at that time, unless there is no such lease
// or it has something to drop.
func (t *Table) Extend(of Holder, generation uint64, confirmed time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.get(of, generation)
	if h == nil || h.mustDrop() || !t.open {
		return false
	}
	h.until = max(h.until, confirmed+Duration)
	return true
}

// get answers nil for a generation that is over.
func (t *Table) get(of Holder, generation uint64) *holder {
	if h := t.byID[of]; h != nil && h.generation == generation {
		return h
	}
	return nil
}

// Release is for a mount that holds nothing any more of a generation, and never will.
func (t *Table) Release(of Holder, generation uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.get(of, generation); h != nil {
		t.lose(h)
	}
}

// lose ends a lease with all that is held by it.
func (t *Table) lose(h *holder) {
	for ino := range h.holds {
		t.unhold(h, ino)
	}
	if t.byID[h.id] == h {
		delete(t.byID, h.id)
	}
	h.dropped = h.revokes
	t.notify(h)
	t.acknowledge(h)
}

func (t *Table) notify(h *holder) {
	if h.isNotified {
		return
	}
	h.isNotified = true
	t.notified = append(t.notified, h.id)
	select {
	case t.news <- struct{}{}:
	default:
	}
}

func (t *Table) unhold(h *holder, ino ids.Inode) {
	delete(h.holds, ino)
	delete(t.holders[ino], h)
	if len(t.holders[ino]) == 0 {
		delete(t.holders, ino)
	}
}

// Expire loses the leases that are over.
func (t *Table) Expire(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
}

func (t *Table) expire(now time.Duration) {
	t.lastExpiry = now
	for _, h := range t.byID {
		if now >= h.until {
			t.end(h, now)
		}
	}
	for id, until := range t.blocked {
		if now >= until {
			delete(t.blocked, id)
		}
	}
}

// end loses a lease that is over.
func (t *Table) end(h *holder, now time.Duration) {
	if h.mustDrop() {
		t.blocked[h.id] = now + blockTime
	}
	t.lose(h)
}

// NoteContact is told that a mount asks about its lease.
func (t *Table) NoteContact(of Holder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.blocked, of)
}

// IsIdle tells whether nobody holds anything, and nothing waits for anybody.
func (t *Table) IsIdle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID) == 0 && len(t.changes) == 0
}

// Held is how many mounts hold something, and how many inodes they do.
func (t *Table) Held() (mounts, inodes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID), len(t.holders)
}

// change is a command that was applied and waits for mounts to drop what it touched.
type change struct {
	index   ids.Index
	touched []ids.Inode
	waits   map[*holder]uint64 // for which of the requests to them
	done    chan struct{}      // closed when it waits for nobody
}

// acknowledge is called when a mount has dropped something.
func (t *Table) acknowledge(h *holder) {
	t.changes = slices.DeleteFunc(t.changes, func(c *change) bool {
		if number, waits := c.waits[h]; waits && number <= h.dropped {
			delete(c.waits, h)
		}
		if len(c.waits) == 0 {
			close(c.done)
		}
		return len(c.waits) == 0
	})
}
