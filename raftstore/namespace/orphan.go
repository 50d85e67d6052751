package namespace

import (
	"slices"
	"time"

	"github.com/tidwall/btree"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// orphans is the inodes without a name.
type orphans struct {
	byIno    *digest.Map[ids.Inode, *orphan]
	expiring *btree.BTreeG[*orphan] // those without a pin, by removal index and inode number
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
	keptBy       []ids.Session // sessions that have pinned it, in ascending order
	data         bool          // its last name was data: every session may write to it
	takenBack    bool          // it was never meant to be
}

func orphanOf(r *storepb.OrphanRecord) *orphan {
	o := &orphan{
		ino: ids.Inode(r.GetIno()), removedBy: ids.Session(r.GetRemovedBy()), removedIndex: ids.Index(r.GetRemovedIndex()), removedAt: r.GetRemovedAt(),
		data: r.GetData(), takenBack: r.GetTakenBack(),
	}
	for _, session := range r.GetKeptBy() {
		o.keptBy = append(o.keptBy, ids.Session(session))
	}
	if r.GetPinned() {
		o = o.pinnedBy(o.removedBy, true)
	}
	return o
}

// isPinned reports whether a session keeps the inode.
func (o *orphan) isPinned() bool { return len(o.keptBy) > 0 }

// isPinnedBy reports whether one session keeps the inode.
func (o *orphan) isPinnedBy(session ids.Session) bool {
	_, found := slices.BinarySearch(o.keptBy, session)
	return found
}

// pinnedBy returns the orphan as it is after one session has pinned it, or unpinned it.
func (o *orphan) pinnedBy(session ids.Session, pinned bool) *orphan {
	changed := *o
	changed.keptBy = slices.DeleteFunc(slices.Clone(o.keptBy), func(s ids.Session) bool { return s == session })
	if pinned {
		at, _ := slices.BinarySearch(changed.keptBy, session)
		changed.keptBy = slices.Insert(changed.keptBy, at, session)
	}
	return &changed
}

// lessByRemoval tells apart those that one command removed.
func lessByRemoval(a, b *orphan) bool {
	if a.removedIndex != b.removedIndex {
		return a.removedIndex < b.removedIndex
	}
	return a.ino < b.ino
}
