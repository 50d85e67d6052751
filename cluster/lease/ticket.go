package lease

import (
	"slices"
	"time"

	"lockfs/raftstore/ids"
)

// maxDropsLogged is the number of drops in a mount's memory.
const maxDropsLogged = 1024

// Ticket belongs to a question in progress, or to a command with questions. Its position is the number of
// inodes dropped before. The cache does not keep an answer about an inode dropped later.
type Ticket struct {
	question  string
	isCommand bool
	holder    Holder
	Position  uint64
	Sent      time.Duration // or before
	Retired   uint64        // generations of the holder up to this one are over
}

// For returns the ticket of a question sent with a command.
func (t Ticket) For(question string) Ticket {
	t.question = question
	return t
}

// dropLog remembers the last dropped inodes.
type dropLog struct {
	position uint64 // number of all drops
	last     [maxDropsLogged]ids.Inode
}

func (l *dropLog) add(inodes []ids.Inode) {
	for _, ino := range inodes {
		l.last[l.position%maxDropsLogged] = ino
		l.position++
	}
}

// hasAny reports whether one of the inodes was dropped after a position, or the log does not reach back
// so far.
func (l *dropLog) hasAny(inodes []ids.Inode, after uint64) bool {
	if l.position-after > maxDropsLogged {
		return true
	}
	for position := after; position < l.position; position++ {
		if slices.Contains(inodes, l.last[position%maxDropsLogged]) {
			return true
		}
	}
	return false
}
