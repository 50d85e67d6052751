package namespace

import (
	"time"

	"github.com/tidwall/btree"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
)

// orphans is the inodes without a name.
type orphans struct {
	byIno    *digest.Map[ids.Inode, *orphan]
	expiring *btree.BTreeG[*orphan] // those that are not pinned, by removal index and inode number
}

func newOrphans(d *digest.Digest) orphans {
	return orphans{digest.NewMap(d, digest.Itself[ids.Inode, *orphan]), btree.NewBTreeGOptions(lessByRemoval, btree.Options{NoLocks: true})}
}

// How long an inode without a name stays for those who have it open elsewhere.
const (
	orphanAge   = 30 * time.Second
	orphanLimit = 1024 // of them, and orphanBytes
)

// orphan is an inode that lost its last name. It is never modified once it is in a tree.
type orphan struct {
	ino          ids.Inode
	removedBy    ids.Session
	removedIndex ids.Index
	removedAt    int64
	pinned       bool // kept until the session that removed it unpins it
	takenBack    bool // it was never meant to be
}

// lessByRemoval tells apart those that one command removed.
func lessByRemoval(a, b *orphan) bool {
	if a.removedIndex != b.removedIndex {
		return a.removedIndex < b.removedIndex
	}
	return a.ino < b.ino
}
