package lease

import "lockfs/raftstore/ids"

// Drops answers what a mount has to drop and the number to say when it has. Nothing: there will be something when news is closed, or
// its lease is lost. known is false if the lease of that generation is lost.
func (t *Table) Drops(of Holder, generation uint64) (inodes []ids.Inode, number uint64, news <-chan struct{}, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.get(of, generation)
	if h == nil {
		return nil, 0, nil, false
	}
	if h.isAsked() {
		for ino, number := range h.holds {
			if number != 0 {
				inodes = append(inodes, ino)
			}
		}
	}
	if len(inodes) == 0 && h.news == nil {
		h.news = make(chan struct{})
	}
	return inodes, h.asked, h.news, true
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
	for ino, asked := range h.holds {
		if asked != 0 && asked <= number {
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
			h.ask(ino)
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
