package lease

import "lockfs/raftstore/ids"

const (
	// grantThreshold is how many questions about an inode a mount has to have asked since that changed for it to be leased before it is Quiet: they
	// have cost about as much as it costs to have the mount drop it.
	grantThreshold = 4
	// maxReadCounts is of how many mounts and inodes the table counts questions.
	maxReadCounts = 4096
)

// ReadsOften counts a question of a mount about an inode that has changed last at a time of whatever clock, and tells whether there were
// so many since then that the mount should have a lease on it even if it may change soon.
func (t *Table) ReadsOften(of Holder, ino ids.Inode, changed int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	by := reader{of, ino}
	i, found := t.readCounts[by]
	if !found && len(t.readCounts) >= maxReadCounts {
		clear(t.readCounts)
	}
	if i.changed != changed {
		i = readCount{changed: changed}
	}
	i.reads++
	t.readCounts[by] = i
	return i.reads > grantThreshold
}
