package fusefs

import (
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
)

// lookAgain is a call that a thread was sent to repeat (ESTALE). The kernel repeats a call once; a second
// ESTALE goes to the program.
type lookAgain struct {
	ino  ids.Inode // the inode, or the directory of the name
	name string
}

// lookAgains are the last repeated calls of threads.
type lookAgains struct{ *thread.Notes[lookAgain] }

func newLookAgains() lookAgains { return lookAgains{thread.NewNotes[lookAgain](0)} }

// wasSent reports whether a thread already repeats its call for the same reason. If not, it records the
// reason.
func (l lookAgains) wasSent(by uint32, what lookAgain) bool {
	if _, _, found := l.Take(by, func(before lookAgain) bool { return before == what }); found {
		return true
	}
	l.Note(by, what)
	return false
}
