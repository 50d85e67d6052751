package watch

import (
	"sync"

	"lockfs/raftstore/ids"
)

// Known counts how often the kernel was told of each inode, less what it has forgotten since. What it does not know, no program
// can watch, have open or stand in: the kernel forgets an inode when its last user has gone.
type Known struct {
	mu      sync.Mutex
	lookups map[ids.Inode]uint64 // more than 0
}

// NewKnown is for a mount of which the kernel knows nothing yet.
func NewKnown() *Known { return &Known{lookups: make(map[ids.Inode]uint64)} }

// Told counts an answer that told the kernel of a node.
func (k *Known) Told(node ids.Inode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lookups[node]++
}

// Forgot is for a node of which the kernel does not remember so many answers any more.
func (k *Known) Forgot(node ids.Inode, lookups uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if left := k.lookups[node]; left > lookups {
		k.lookups[node] = left - lookups
	} else {
		delete(k.lookups, node)
	}
}

// Knows tells whether the kernel knows a node.
func (k *Known) Knows(node ids.Inode) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lookups[node] > 0
}

// Len is how many nodes the kernel knows.
func (k *Known) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.lookups)
}
