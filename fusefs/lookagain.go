package fusefs

import (
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
)

// lookAgain is a call that a thread was sent to begin anew (ESTALE). The kernel does that once in a call, and gives a second
// ESTALE to the program.
type lookAgain struct {
	ino  ids.Inode // the inode, or the directory of the name
	name string
}

// lookAgains are the calls that threads were sent to begin anew last.
type lookAgains struct{ *thread.Notes[lookAgain] }

func newLookAgains() lookAgains { return lookAgains{thread.NewNotes[lookAgain](0)} }

// wasSent reports whether a thread was sent to look again for the same reason before, and notes that it is sent now if not.
func (l lookAgains) wasSent(by uint32, what lookAgain) bool {
	if _, _, found := l.Take(by, func(before lookAgain) bool { return before == what }); found {
		return true
	}
	l.Note(by, what)
	return false
}
