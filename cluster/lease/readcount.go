package lease

import "lockfs/raftstore/ids"

const (
	// grantThreshold is the number of reads after a change which justify a lease before QuietPeriod: they
	// have cost about as much as a revocation.
	grantThreshold = 4
	// maxReadCounts limits the counted pairs of mount and inode.
	maxReadCounts = 4096
)

// ReadsOften counts a read of an inode with its last change, a time of any clock. It reports whether there
// were enough reads since then for an early lease.
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
