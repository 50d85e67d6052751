package inotify

import (
	"maps"
	"sync"

	"lockfs/raftstore/ids"
)

// Known counts the kernel's lookups of each inode, without forgotten ones. No program can watch, open or be
// in an unknown inode: the kernel forgets an inode only after its last user.
type Known struct {
	mu      sync.Mutex
	lookups map[ids.Inode]uint64 // more than 0
}

// NewKnown returns the counts for a new mount.
func NewKnown() *Known { return &Known{lookups: make(map[ids.Inode]uint64)} }

// Told counts an answer with a node.
func (k *Known) Told(node ids.Inode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lookups[node]++
}

// Forgot subtracts forgotten lookups of a node.
func (k *Known) Forgot(node ids.Inode, lookups uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if left := k.lookups[node]; left > lookups {
		k.lookups[node] = left - lookups
	} else {
		delete(k.lookups, node)
	}
}

// Knows reports whether the kernel knows a node.
func (k *Known) Knows(node ids.Inode) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lookups[node] > 0
}

// Len returns the number of nodes known to the kernel.
func (k *Known) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.lookups)
}

// Save returns the kernel's number of lookups of each inode, for the mount's next process.
func (k *Known) Save() map[ids.Inode]uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.lookups)
}

// Restore adds saved lookups.
func (k *Known) Restore(saved map[ids.Inode]uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.Copy(k.lookups, saved)
}
