package fusefs

import (
	"sync"

	"lockfs/raftstore/ids"
)

// mostUnnamed is how many inodes without a name a mount remembers. The cluster keeps fewer unpinned ones.
const mostUnnamed = 4096

// unnamed are the inodes which lost their last name on another host recently. The kernel may open one after
// an earlier lookup.
type unnamed struct {
	mu    sync.Mutex
	known map[ids.Inode]bool
	order []ids.Inode // a ring: the oldest is at next
	next  int
}

func newUnnamed() *unnamed { return &unnamed{known: make(map[ids.Inode]bool)} }

func (u *unnamed) add(ino ids.Inode) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.known[ino]:
		return
	case len(u.order) < mostUnnamed:
		u.order = append(u.order, ino)
	default:
		delete(u.known, u.order[u.next])
		u.order[u.next] = ino
		u.next = (u.next + 1) % mostUnnamed
	}
	u.known[ino] = true
}

func (u *unnamed) has(ino ids.Inode) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known[ino]
}
