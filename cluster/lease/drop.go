package lease

import (
	"time"

	"lockfs/raftstore/ids"
)

// Drops answers what a mount has to drop and the number to say when it has, and when its lease is to be extended at the latest, if it is to be.
// known is false if the lease of that generation is lost. [Table.Told] tells when there is more.
func (t *Table) Drops(of Holder, generation uint64) (inodes []ids.Inode, number uint64, due time.Duration, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.get(of, generation)
	if h == nil {
		return nil, 0, 0, false
	}
	if h.isAsked() {
		for ino, holding := range h.holds {
			if holding.drop != 0 {
				inodes = append(inodes, ino)
			}
		}
	}
	return inodes, h.asked, h.until - Duration + Hold, true
}

// ask has a mount drop an inode, and answers the number of that request.
func (t *Table) ask(h *holder, ino ids.Inode) uint64 {
	holding := h.holds[ino]
	if holding.drop != 0 {
		return holding.drop
	}
	h.asked++
	holding.drop = h.asked
	h.holds[ino] = holding
	t.tell(h)
	return h.asked
}

// News tells, when there is something in it, that Told will answer somebody.
func (t *Table) News() <-chan struct{} { return t.news }

// Told answers once those who were asked to drop something, or have lost their leases.
func (t *Table) Told() []Holder {
	t.mu.Lock()
	defer t.mu.Unlock()
	told := t.told
	t.told = nil
	for _, of := range told {
		if h := t.byID[of]; h != nil {
			h.isTold = false
		}
	}
	return told
}

// Dropped is a mount's word that it has done the requests up to a number.
func (t *Table) Dropped(of Holder, generation, number uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.get(of, generation)
	if h == nil || number <= h.dropped || number > h.asked {
		return
	}
	h.dropped = number
	for ino, holding := range h.holds {
		if holding.drop != 0 && holding.drop <= number {
			t.unhold(h, ino)
		}
	}
	t.settle(h)
}

// Foretell asks the holders of inodes to drop them, because a command is on its way that touches them. Nobody gets them before over is
// called, which is to be once that was applied or will not be.
func (t *Table) Foretell(inodes []ids.Inode) (over func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	foretold := t.foretold // a later term has its own
	for _, ino := range inodes {
		foretold[ino]++
		for h := range t.holders[ino] {
			t.ask(h, ino)
		}
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, ino := range inodes {
			if foretold[ino]--; foretold[ino] == 0 {
				delete(foretold, ino)
			}
		}
	}
}
