package fusefs

import (
	"syscall"

	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// judged is a thread's last lookups: the kernel checks permissions of removals and replacements on their
// inodes. Before each such call the kernel looks up its name, or the two of a rename, under the directory's
// lock. No answer stays valid for longer (see Caching in the package documentation). Lookups of other threads
// do not count.
type judged struct {
	last, before resolved
	again        bool // the kernel was sent to look again
}

type name struct {
	parent ids.Inode
	name   string
}

// resolved is a name with its inode; ino 0: no entry.
type resolved struct {
	name name
	ino  ids.Inode
}

// judgements are the last lookups of each thread.
type judgements struct {
	*thread.Notes[judged]
	lost bool // some may be in a crashed process
}

func newJudgements() judgements { return judgements{Notes: thread.NewNotes[judged](0)} }

// resolve records a lookup.
func (js judgements) resolve(thread uint32, parent ids.Inode, of string, ino ids.Inode) {
	now := resolved{name{parent, of}, ino}
	j, _, _ := js.Get(thread)
	if j.last.name != now.name { // the kernel looks twice after a change of the inode
		j.before = j.last
	}
	j.last = now
	js.Note(thread, j)
}

// judge returns ESTALE, once in a call, if the name has another inode than the kernel checked: the kernel
// then looks again. After a second change it returns EPERM: the new file may not be the caller's.
func (js judgements) judge(by *storepb.Caller, result *storepb.Result, errno syscall.Errno) syscall.Errno {
	isJudged := result.GetCode() != storepb.Code_NOT_JUDGED
	j, _, _ := js.Get(by.GetPid())
	if isJudged && !j.again {
		return errno
	}
	j.again = !j.again
	js.Note(by.GetPid(), j)
	if isJudged || j.again {
		return errno
	}
	return syscall.EPERM
}

// judgedAs returns the inode which the kernel has checked for a thread's change of a name. nil: unknown, as
// the thread is invisible from here. If a crash may have lost it, the result matches no inode, so the kernel
// looks again.
func (js judgements) judgedAs(at place) *ids.Inode {
	j, _, _ := js.Get(at.caller.GetPid())
	for _, r := range []resolved{j.last, j.before} {
		if r.name.parent == at.parent && r.name.name == string(at.name) {
			return &r.ino
		}
	}
	if js.lost && at.caller.GetPid() != 0 {
		return new(ids.UnknownInode)
	}
	return nil
}

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
