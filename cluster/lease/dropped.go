package lease

import (
	"time"

	"lockfs/raftstore/ids"
)

// maxChangers is the number of inodes whose last changer the table knows.
const maxChangers = 4096

// Dropped takes the list in a mount's command: the inodes it is about to change, and has dropped. They need
// no revocation. A lease asked for after position stays, even if the command comes late or twice.
func (t *Table) Dropped(of Holder, position uint64, inodes []ids.Inode, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.changers)+len(inodes) > maxChangers {
		clear(t.changers)
	}
	h := t.byID[of]
	for _, ino := range inodes {
		t.noteChanger(of, ino, now)
		if h == nil {
			continue
		}
		// a revocation sent before is acknowledged separately
		if holding, holds := h.holds[ino]; holds && holding.revoke == 0 && holding.asked < position {
			t.unhold(h, ino)
		}
	}
}

// noteChanger is called before other holders are revoked.
func (t *Table) noteChanger(of Holder, ino ids.Inode, now time.Duration) {
	last, found := t.changers[ino]
	next := changer{of, now, last.other}
	switch {
	case t.hasOthers(of, ino):
		next.other = now
	case found && last.by != of:
		next.other = last.at
	}
	t.changers[ino] = next
}

func (t *Table) hasOthers(than Holder, ino ids.Inode) bool {
	for h := range t.holders[ino] {
		if h.id != than {
			return true
		}
	}
	return false
}

// IsSoleHolder reports whether no other mount holds one of the inodes, or did, or changed one, within
// QuietPeriod.
func (t *Table) IsSoleHolder(with Holder, inodes []ids.Inode, now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ino := range inodes {
		last, found := t.changers[ino]
		if found && last.by != with {
			last.other = last.at
		}
		if last.other != 0 && now-last.other < QuietPeriod || t.hasOthers(with, ino) {
			return false
		}
	}
	return true
}
