package fusefs

import (
	"syscall"

	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// judged is what a thread has looked up last: the names by whose inodes the kernel judges whether it may remove or replace
// them. Before each such call the kernel looks up its name, or the two of a rename, under the lock of the directory; nothing
// that it was told is valid any longer than that (see Caching in the package documentation). What others were told of the
// name at the same time does not count.
type judged struct {
	last, before resolved
	again        bool // the kernel was sent to look once more
}

// name is one in a directory.
type name struct {
	parent ids.Inode
	name   string
}

// resolved is what a name was; ino 0: it was free.
type resolved struct {
	name name
	ino  ids.Inode
}

// judgements are what each thread has looked up last.
type judgements struct {
	*thread.Notes[judged]
	lost bool // some may have been noted by a process that was killed
}

func newJudgements() judgements { return judgements{Notes: thread.NewNotes[judged](0)} }

// resolve notes what a thread has looked up.
func (js judgements) resolve(thread uint32, parent ids.Inode, of string, ino ids.Inode) {
	now := resolved{name{parent, of}, ino}
	j, _, _ := js.Get(thread)
	if j.last.name != now.name { // the kernel looks twice when it finds another inode than it knew
		j.before = j.last
	}
	j.last = now
	js.Note(thread, j)
}

// judge sends the kernel to look again, once in a call, when another inode than it judged is there (ESTALE). If that one has
// gone too, somebody is faster: then what is there is not the caller's, for all that is known (EPERM).
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

// judgedAs is the inode that the kernel has judged for what a thread is about to do to a name. Nil: it is not known, for
// the thread cannot be seen from here. If it may have been forgotten it is another one than any, for the kernel to look again.
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
