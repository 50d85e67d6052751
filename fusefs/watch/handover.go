package watch

import (
	"maps"

	"lockfs/raftstore/ids"
)

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
