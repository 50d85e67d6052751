package lease

import (
	"cmp"
	"container/list"
	"time"

	"lockfs/raftstore/ids"
)

// maxHeld limits the inodes of a mount.
const maxHeld = 4096

// blockTime is how long a mount gets no lease after it ignored a revocation, unless it renews before.
const blockTime = 10 * Duration

// block is the end of the time in which a mount gets no lease.
type block struct {
	of    Holder
	until time.Duration
}

// Holder is a client of a session. A process which takes over a session is another client, so late messages
// of its predecessor do not count for it.
type Holder struct {
	Session ids.Session
	Client  uint64 // drawn by each client
}

// Request is a client's request for a lease.
type Request struct {
	Holder
	Retired uint64 // generations up to this one are over
	Asked   uint64 // position (Ticket) of the question
}

// holder is a mount with its leases.
type holder struct {
	id         Holder
	generation uint64
	until      time.Duration
	holds      map[ids.Inode]holding
	revokes    uint64 // number of the last revocation
	dropped    uint64 // last acknowledged revocation

	revocations map[uint64]revocation // later ones, by number

	isNotified bool // NotifiedHolders returns it next
}

// lessByEnd orders by the ends of leases. No two holders have one generation.
func lessByEnd(a, b *holder) bool {
	return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.generation, b.generation)) < 0
}

// revocation asks a mount to drop an inode.
type revocation struct {
	ino   ids.Inode
	await []*change // pending because of it
}

// holding is an inode held by a mount.
type holding struct {
	revoke uint64 // number of its revocation; 0: none
	asked  uint64 // position of the last question about it
}

// changer is the mount which announced the last change of an inode.
type changer struct {
	by    Holder
	at    time.Duration
	other time.Duration // last use by another mount, or earlier; 0: never
}

// reader is a mount with reads of an inode.
type reader struct {
	of  Holder
	ino ids.Inode
}

// readCount counts its reads since the inode changed.
type readCount struct {
	changed int64 // when that was, on any clock
	reads   int
}

// mustDrop reports whether a revocation is not acknowledged.
func (h *holder) mustDrop() bool { return h.revokes > h.dropped }

// change is an applied command with inodes being revoked.
type change struct {
	index   ids.Index
	touched []ids.Inode
	waits   int           // number of mounts which have not dropped an inode of it
	until   time.Duration // end of their leases: a lease is not extended while its mount has something to drop
	done    chan struct{} // closed at the last acknowledgement
	places  []place       // in lists
}

type place struct {
	in *list.List
	at *list.Element
}
