package lease

import (
	"time"

	"lockfs/raftstore/ids"
)

// maxHeld is how many inodes a mount holds at most.
const maxHeld = 4096

// blockTime is for how long a mount that did not drop what it was asked to gets nothing, unless it is heard of before.
const blockTime = 10 * Duration

// Holder is who holds something: a session's client. A process that goes on with the session of another one is a client of its own, so
// that nothing the other sent counts for it.
type Holder struct {
	Session ids.Session
	Client  uint64 // drawn by each
}

// Request is what somebody says of himself who wants a lease.
type Request struct {
	Holder
	Retired uint64 // no generation up to this one counts for him any more
	Asked   uint64 // his position (Ticket) when he asked
}

// holder is a mount with what it holds.
type holder struct {
	id         Holder
	generation uint64
	until      time.Duration
	holds      map[ids.Inode]holding
	revokes    uint64 // number of the last such request
	dropped    uint64 // the last one it has done
	isNotified bool   // it is among those that Told answers next
}

// holding is what is noted of an inode that a mount holds.
type holding struct {
	revoke uint64 // number of the request to drop it; 0: there is none
	asked  uint64 // the position from which it was asked for last
}

// changer is who has said that it would change an inode, and when.
type changer struct {
	by    Holder
	at    time.Duration
	other time.Duration // when another one had to do with it last, or before; 0: never
}

// reader is a mount that asks about an inode.
type reader struct {
	of  Holder
	ino ids.Inode
}

// readCount is how often it has asked since the inode changed.
type readCount struct {
	changed int64 // when that was, whatever the clock
	reads   int
}

// mustDrop tells whether the mount has something to drop.
func (h *holder) mustDrop() bool { return h.revokes > h.dropped }
