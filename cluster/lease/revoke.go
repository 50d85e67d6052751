package lease

import (
	"time"

	"lockfs/raftstore/ids"
)

// Revocations returns the inodes which a mount has to drop, the number for [Table.Acknowledge], and the
// latest time to extend its lease. known is false if the lease of this generation is lost.
// [Table.NotifiedHolders] reports new revocations.
func (t *Table) Revocations(of Holder, generation uint64) (inodes []ids.Inode, number uint64, due time.Duration, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.get(of, generation)
	if h == nil {
		return nil, 0, 0, false
	}
	for number := h.dropped + 1; number <= h.revokes; number++ {
		if ino := h.revocations[number].ino; h.holds[ino].revoke == number {
			inodes = append(inodes, ino)
		}
	}
	return inodes, h.revokes, h.until - Duration + Hold, true
}

// revoke asks a mount to drop an inode, and returns the number of the revocation.
func (t *Table) revoke(h *holder, ino ids.Inode) uint64 {
	holding := h.holds[ino]
	if holding.revoke != 0 {
		return holding.revoke
	}
	h.revokes++
	holding.revoke = h.revokes
	h.holds[ino] = holding
	h.revocations[h.revokes] = revocation{ino: ino}
	t.notify(h)
	return h.revokes
}

// News has an element when NotifiedHolders would return a holder.
func (t *Table) News() <-chan struct{} { return t.news }

// NotifiedHolders returns, once each, the holders with a new revocation or a lost lease.
func (t *Table) NotifiedHolders() []Holder {
	t.mu.Lock()
	defer t.mu.Unlock()
	told := t.notified
	t.notified = nil
	for _, of := range told {
		if h := t.byID[of]; h != nil {
			h.isNotified = false
		}
	}
	return told
}

// Acknowledge records: a mount has done the revocations up to a number.
func (t *Table) Acknowledge(of Holder, generation, number uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.get(of, generation)
	if h == nil || number <= h.dropped || number > h.revokes {
		return
	}
	for done := h.dropped + 1; done <= number; done++ {
		if ino := h.revocations[done].ino; h.holds[ino].revoke == done {
			t.unhold(h, ino)
		}
	}
	t.acknowledge(h, number)
}

// RevokeAhead asks the holders of inodes to drop them, because a command in progress touches them. The inodes
// are not granted until the caller calls over, after the command was applied or has failed.
func (t *Table) RevokeAhead(inodes []ids.Inode) (over func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	foretold := t.revokedAhead // a later term has its own
	for _, ino := range inodes {
		foretold[ino]++
		for h := range t.holders[ino] {
			t.revoke(h, ino)
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
