package lease

import (
	"time"

	"lockfs/raftstore/ids"
)

// mostHeld is how many inodes a mount holds at most.
const mostHeld = 4096

// silence is for how long a mount that did not drop what it was asked to gets nothing, unless it is heard of before.
const silence = 10 * Duration

// Holder is who holds something: a session's client. A process that goes on with the session of another one is a client of its own, so
// that nothing the other sent counts for it.
type Holder struct {
	Session ids.Session
	Client  uint64 // drawn by each
}

// holder is a mount with what it holds.
type holder struct {
	id         Holder
	generation uint64
	until      time.Duration
	holds      map[ids.Inode]uint64 // 0, or the number of the request to drop it
	asked      uint64               // number of the last such request
	dropped    uint64               // the last one it has done
	news       chan struct{}        // closed at the next one; nil: nobody waits for it
}

// isAsked tells whether the mount has something to drop.
func (h *holder) isAsked() bool { return h.asked > h.dropped }

// ask has a mount drop an inode, and answers the number of that request.
func (h *holder) ask(ino ids.Inode) uint64 {
	if number := h.holds[ino]; number != 0 {
		return number
	}
	h.asked++
	h.holds[ino] = h.asked
	h.tell()
	return h.asked
}

func (h *holder) tell() {
	if h.news != nil {
		close(h.news)
		h.news = nil
	}
}
