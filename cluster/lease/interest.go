package lease

import "lockfs/raftstore/ids"

const (
	// worth is how many questions about an inode a mount has to have asked since that changed for it to be leased before it is Quiet: they
	// have cost about as much as it costs to have the mount drop it.
	worth = 4
	// mostInterests is of how many mounts and inodes the table counts questions.
	mostInterests = 4096
)

// AsksOften counts a question of a mount about an inode that has changed last at a time of whatever clock, and tells whether there were
// so many since then that the mount should have a lease on it even if it may change soon.
func (t *Table) AsksOften(of Holder, ino ids.Inode, changed int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	by := asker{of, ino}
	i, found := t.interests[by]
	if !found && len(t.interests) >= mostInterests {
		clear(t.interests)
	}
	if i.changed != changed {
		i = interest{changed: changed}
	}
	i.questions++
	t.interests[by] = i
	return i.questions > worth
}
