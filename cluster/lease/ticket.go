package lease

import (
	"slices"
	"time"

	"lockfs/raftstore/ids"
)

// maxDropsLogged is of how many drops a mount remembers what it has dropped.
const maxDropsLogged = 1024

// Ticket is a question that is on its way, or a command with questions. Its position is how many inodes the mount had dropped until
// then: what comes back is kept only of inodes that were not dropped after that.
type Ticket struct {
	question  string
	isCommand bool
	holder    Holder
	Position  uint64
	Sent      time.Duration // when it was, or before
	Retired   uint64        // no generation up to this one counts any more for the holder
}

// For is the ticket of one of the questions that go with a command.
func (t Ticket) For(question string) Ticket {
	t.question = question
	return t
}

// dropLog remembers the inodes that were dropped last.
type dropLog struct {
	position uint64 // how many were until now
	last     [maxDropsLogged]ids.Inode
}

func (l *dropLog) add(inodes []ids.Inode) {
	for _, ino := range inodes {
		l.last[l.position%maxDropsLogged] = ino
		l.position++
	}
}

// hasAny tells whether any of some inodes was dropped after a position, or may have been: it is not remembered.
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
