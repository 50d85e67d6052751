package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/answer"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// newFileAge is more than the kernel takes from a creation to its question, unless the thread has to wait for a processor, or the host
// is paused. It bounds how old an answer could be if a kernel did not ask.
const newFileAge = time.Second

// calls remember of each thread what it was told in the system call that it is in: the kernel makes several requests of one, and
// does not say so.
type calls struct {
	created *thread.Notes[made]
	walked  *thread.Notes[walked]
	entered *thread.Notes[entered]
	lost    bool // some may have been noted by a process that was killed
}

func newCalls() *calls {
	return &calls{
		created: thread.NewNotes[made](0),
		walked:  thread.NewNotes[walked](0),
		entered: thread.NewNotes[entered](enterLimit),
	}
}

// made is what a thread was told of a file that it created.
type made struct {
	attr   fuse.Attr
	before bool // by a process that was killed, which may have been asked for it already
}

// justCreated answers the attributes of what a thread has created in the open(2) that it is in the middle
// of. Before the open returns, the kernel judges permissions once more, and as it keeps no attributes it
// asks for them. Should that fail, the open would fail with a file left behind that nobody was told of. So
// this one request is answered with what the creation answered. The thread cannot ask anything else
// before, and the kernel does not keep what it is told, so nobody gets to see an old answer. If it is no longer fresh, or may have been
// told already, it is for when nobody has a newer one (mayOpen).
func (c *calls) justCreated(thread uint32, ino ids.Inode) (m made, age time.Duration, found, fresh bool) {
	m, age, found = c.created.Take(thread, func(m made) bool { return ids.Inode(m.attr.Ino) == ino })
	return m, age, found, found && !m.before && age < newFileAge
}

// mayOpen tells whether a thread may be in the open(2) still in which it created something so long ago, and not in an fstat(2), later. That of
// one whose call has a number that says nothing is told by the time, and after a crash that of one which may not be looked at.
func mayOpen(by uint32, before bool, age time.Duration) bool {
	return !before && thread.BeginsAnew(by) || thread.IsSeenToBegin(by) || age < answer.Fresh && thread.MayBegin(by)
}

// walked is a name that a thread has just looked up, and what it was: the kernel opens by inode.
type walked struct {
	ino  ids.Inode
	seen []*storepb.Observation
}

// cameBy answers the name by which a thread came to an inode, as it was when it was looked up; none: it did not come by one, as
// through a file in /proc.
func (c *calls) cameBy(thread uint32, ino ids.Inode) []*storepb.Observation {
	w, _, found := c.walked.Take(thread, func(w walked) bool { return w.ino == ino })
	if found && c.lost {
		c.walked.Note(thread, walked{}) // see surelyCameBy
	}
	return w.seen
}

// surelyCameBy is cameBy for what is not to be done without the name, if there was one. If the name may have been forgotten, the kernel
// is sent to look again (ESTALE): it begins a system call anew that has walked a path, once. Of a thread that has looked up any name since
// nothing is forgotten, as it makes one system call after the other.
//
// It is told to the program if the process is killed for a second time during that call.
func (c *calls) surelyCameBy(by uint32, ino ids.Inode) ([]*storepb.Observation, syscall.Errno) {
	if c.lost && by != 0 {
		if _, _, isKnown := c.walked.Get(by); !isKnown && thread.MayBegin(by) {
			c.walked.Note(by, walked{})
			return nil, syscall.ESTALE
		}
	}
	return c.cameBy(by, ino), 0
}

// entered is a directory whose attributes a thread was told, as of a command.
type entered struct {
	dir   ids.Inode
	index ids.Index
}

// enterLimit is how long a thread may take from a directory's attributes to a name in it for both to be taken for parts of
// one system call.
const enterLimit = 100 * time.Millisecond

// enteredAt answers which state will do for a thread that looks up a name: one that is no older than that from which the
// directory's attributes came in the same system call. 0: only the newest will.
//
// The kernel has to ask for the attributes of a directory before each name that it looks up there: whether the caller may
// search it, it judges itself (default_permissions), and no attribute that it is told stays valid. So the last time that a
// thread was told them was in this system call.
func (c *calls) enteredAt(thread uint32, dir ids.Inode) ids.Index {
	e, age, found := c.entered.Get(thread)
	if !found || e.dir != dir || age > enterLimit {
		return 0
	}
	return e.index
}
