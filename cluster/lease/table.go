package lease

import (
	"container/list"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"lockfs/raftstore/ids"
)

// Table has the leases granted by a leader. Times are on its monotonic clock.
type Table struct {
	mu           sync.Mutex
	open         bool     // it leads, and no lease of other leaders lasts
	term         ids.Term // in which it began; 0: none
	stopped      bool     // see Stop
	generation   uint64
	byID         map[Holder]*holder
	holders      map[ids.Inode]map[*holder]bool
	revokedAhead map[ids.Inode]int        // commands in progress which touch it
	changers     map[ids.Inode]changer    // last announced change
	readCounts   map[reader]readCount     // reads of recently changed inodes
	changes      list.List                // *change, pending, in the order of their indexes
	touching     map[ids.Inode]*list.List // those of them with a touched inode, in the same order
	byEnd        *btree.BTreeG[*holder]   // all holders, by the ends of their leases
	blocked      map[Holder]time.Duration // end of the time without leases, after an ignored revocation
	blocks       []block                  // the same in the order of the ends, and some already over
	notified     []Holder                 // see NotifiedHolders
	news         chan struct{}            // capacity 1
}

// NewTable returns the table of a node without leadership.
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
	t.blocked, t.blocks = make(map[Holder]time.Duration), nil
	t.touching = make(map[ids.Inode]*list.List)
	t.byEnd = btree.NewBTreeGOptions(lessByEnd, btree.Options{NoLocks: true})
	t.readCounts = make(map[reader]readCount)
}

// Begin starts granting in a term. The caller has waited for all leases of earlier terms.
func (t *Table) Begin(term ids.Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.byID {
		t.lose(h)
	}
	t.clear()
	t.open, t.stopped, t.term, t.generation = true, false, term, uint64(term)<<32
}

// Term returns the last term in which the table began; 0: none.
func (t *Table) Term() ids.Term {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.term
}

// End stops granting. Leases in force still delay changes.
func (t *Table) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = false
}

// Grant leases inodes to a mount after a request just before now. ok is false if there is no lease. The
// caller reads the answer after this call, and before it applies anything else.
func (t *Table) Grant(to Request, inodes []ids.Inode, now time.Duration) (generation uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open || to.Session == 0 {
		return 0, false
	}
	h := t.byID[to.Holder]
	switch { // an expired lease is not continued: the mount would not keep its answers
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
		h = &holder{id: to.Holder, generation: t.generation, holds: make(map[ids.Inode]holding), revocations: make(map[uint64]revocation)}
		t.byID[to.Holder] = h
	case h.mustDrop() || len(h.holds) >= maxHeld:
		return 0, false
	}
	t.extend(h, now+Duration)
	for _, ino := range inodes {
		h.holds[ino] = holding{asked: max(h.holds[ino].asked, to.Asked)}
		if t.holders[ino] == nil {
			t.holders[ino] = make(map[*holder]bool)
		}
		t.holders[ino][h] = true
	}
	return h.generation, true
}

// Extend extends a mount's lease from the time at which the quorum round began, unless it is lost or has a
// revocation.
func (t *Table) Extend(of Holder, generation uint64, confirmed time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.get(of, generation)
	if h == nil || h.mustDrop() || !t.open {
		return false
	}
	t.extend(h, confirmed+Duration)
	return true
}

func (t *Table) extend(h *holder, until time.Duration) {
	t.byEnd.Delete(h)
	h.until = max(h.until, until)
	t.byEnd.Set(h)
}

// get returns nil for an ended generation.
func (t *Table) get(of Holder, generation uint64) *holder {
	if h := t.byID[of]; h != nil && h.generation == generation {
		return h
	}
	return nil
}

// Release ends a generation after its holder has dropped everything.
func (t *Table) Release(of Holder, generation uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.get(of, generation); h != nil {
		t.lose(h)
	}
}

// lose ends a lease with all its inodes.
func (t *Table) lose(h *holder) {
	for ino := range h.holds {
		t.unhold(h, ino)
	}
	t.byEnd.Delete(h)
	if t.byID[h.id] == h {
		delete(t.byID, h.id)
	}
	t.notify(h)
	t.acknowledge(h, h.revokes)
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

// Expire ends the expired leases.
func (t *Table) Expire(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
}

func (t *Table) expire(now time.Duration) {
	for {
		h, found := t.byEnd.Min()
		if !found || now < h.until {
			break
		}
		t.end(h, now)
	}
	for len(t.blocks) > 0 && now >= t.blocks[0].until {
		first := t.blocks[0]
		t.blocks = t.blocks[1:]
		if t.blocked[first.of] == first.until {
			delete(t.blocked, first.of)
		}
	}
}

// end ends an expired lease.
func (t *Table) end(h *holder, now time.Duration) {
	if h.mustDrop() {
		t.blocked[h.id] = now + blockTime
		t.blocks = append(t.blocks, block{h.id, now + blockTime})
	}
	t.lose(h)
}

// NoteContact records a lease request of a mount.
func (t *Table) NoteContact(of Holder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.blocked, of)
}

// IsIdle reports whether there are no leases and no pending changes.
func (t *Table) IsIdle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID) == 0 && t.changes.Len() == 0
}

// Held returns the number of mounts with leases, and of leased inodes.
func (t *Table) Held() (mounts, inodes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID), len(t.holders)
}

// acknowledge updates the pending changes after a mount has done the revocations up to a number.
func (t *Table) acknowledge(h *holder, number uint64) {
	for ; h.dropped < number; delete(h.revocations, h.dropped) {
		h.dropped++
		for _, c := range h.revocations[h.dropped].await {
			if c.waits--; c.waits == 0 {
				t.finish(c)
			}
		}
	}
}

func (t *Table) finish(c *change) {
	close(c.done)
	for _, place := range c.places {
		place.in.Remove(place.at)
	}
	for _, ino := range c.touched {
		if pending := t.touching[ino]; pending != nil && pending.Len() == 0 {
			delete(t.touching, ino)
		}
	}
}
