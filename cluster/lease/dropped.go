package lease

import (
	"time"

	"lockfs/raftstore/ids"
)

// maxChangers is of how many inodes the table knows who changes them.
const maxChangers = 4096

// Dropped is a mount's word, with a command, that it is about to change inodes and has dropped what it had asked of them before a
// position: nobody has to ask it to. What it asked for after that it holds on, however late the command comes, or how often.
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
		// What it was asked to drop before, it will say of its own.
		if holding, holds := h.holds[ino]; holds && holding.revoke == 0 && holding.asked < position {
			t.unhold(h, ino)
		}
	}
}

// noteChanger is called before others are asked to drop it.
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

// IsSoleHolder tells whether nobody but a mount holds any of the inodes, or has done so or changed one in the last moment, as far as mounts say.
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
