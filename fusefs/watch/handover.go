package watch

import (
	"maps"

	"lockfs/raftstore/ids"
)

// Save answers how often the kernel was told of each inode, for the process that serves the mount next.
func (k *Known) Save() map[ids.Inode]uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.lookups)
}

// Restore begins with what was saved.
func (k *Known) Restore(saved map[ids.Inode]uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.Copy(k.lookups, saved)
}
