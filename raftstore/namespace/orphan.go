package namespace

import (
	"cmp"
	"time"

	"github.com/tidwall/btree"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// orphans are the inodes without a name.
type orphans struct {
	byIno         *digest.Map[ids.Inode, *orphan]
	expiring      *btree.BTreeG[*orphan] // those without a pin, by removal index and inode number
	pins          *digest.Tree[pin]      // by inode, session
	pinsBySession *btree.BTreeG[pin]     // by session, inode
}

func newOrphans(d *digest.Digest) orphans {
	options := btree.Options{NoLocks: true}
	return orphans{
		byIno: digest.NewMap(d, digest.Itself[ids.Inode, *orphan]), expiring: btree.NewBTreeGOptions(lessByRemoval, options),
		pins: digest.NewTree(d, lessPin, nil), pinsBySession: btree.NewBTreeGOptions(lessPinBySession, options),
	}
}

// How long an inode without a name stays for descriptors on other hosts.
const (
	orphanAge   = 30 * time.Second
	orphanLimit = 1024 // orphans; see also orphanBytes
)

// orphan is an inode that lost its last name. It is never modified once it is in a tree.
type orphan struct {
	ino          ids.Inode
	removedBy    ids.Session
	removedIndex ids.Index
	removedAt    int64
	data         bool // its last name was data: every session may write to it
	takenBack    bool // Cancel removed it
}

// pin keeps an orphan for a session with an open descriptor.
type pin struct {
	ino     ids.Inode
	session ids.Session
}

func lessPin(a, b pin) bool {
	return cmp.Or(cmp.Compare(a.ino, b.ino), cmp.Compare(a.session, b.session)) < 0
}

func lessPinBySession(a, b pin) bool {
	return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.ino, b.ino)) < 0
}

func (os *orphans) isPinned(ino ids.Inode) (pinned bool) {
	os.pins.Ascend(pin{ino: ino}, func(p pin) bool {
		pinned = p.ino == ino
		return false
	})
	return pinned
}

func (os *orphans) isPinnedBy(ino ids.Inode, session ids.Session) bool {
	_, found := os.pins.Get(pin{ino, session})
	return found
}

func (os *orphans) pinsOf(session ids.Session) (own []ids.Inode) {
	os.pinsBySession.Ascend(pin{session: session}, func(p pin) bool {
		if p.session == session {
			own = append(own, p.ino)
		}
		return p.session == session
	})
	return own
}

func orphanOf(r *storepb.OrphanRecord) *orphan {
	return &orphan{
		ino: ids.Inode(r.GetIno()), removedBy: ids.Session(r.GetRemovedBy()), removedIndex: ids.Index(r.GetRemovedIndex()), removedAt: r.GetRemovedAt(),
		data: r.GetData(), takenBack: r.GetTakenBack(),
	}
}

// lessByRemoval orders by removal, and by inode number within one command.
func lessByRemoval(a, b *orphan) bool {
	if a.removedIndex != b.removedIndex {
		return a.removedIndex < b.removedIndex
	}
	return a.ino < b.ino
}
