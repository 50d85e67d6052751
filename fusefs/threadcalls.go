package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/orphanreply"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// newFileAge is longer than the kernel takes from a creation to its GetAttr, unless the thread waits for a
// processor or the host pauses. It limits the age of an answer for a kernel without this request.
const newFileAge = time.Second

// calls has the answers which each thread got in its current system call. The kernel makes several requests
// for one call, without a common number.
type calls struct {
	created *thread.Notes[made]
	walked  *thread.Notes[walked]
	entered *thread.Notes[entered]
	lost    bool // some may be in a crashed process
}

func newCalls() *calls {
	return &calls{
		created: thread.NewNotes[made](0),
		walked:  thread.NewNotes[walked](0),
		entered: thread.NewNotes[entered](enterLimit),
	}
}

// made is the answer to a thread's creation of a file.
type made struct {
	attr   fuse.Attr
	before bool // by a crashed process, which may have used it for a GetAttr
}

// justCreated returns the attributes of the file that a thread has created in its current open(2). Before the
// open returns, the kernel checks permissions again, and asks for the attributes, as it caches none. A
// failure would fail the open and leave an unreported file. So this one request gets the attributes of the
// creation.
//
// The thread makes no other request before, and the kernel does not cache the answer, so no program sees
// outdated attributes. Attributes which are not fresh, or may have been used, are for failures only (see
// mayOpen).
func (c *calls) justCreated(thread uint32, ino ids.Inode) (m made, age time.Duration, found, fresh bool) {
	m, age, found = c.created.Take(thread, func(m made) bool { return ids.Inode(m.attr.Ino) == ino })
	return m, age, found, found && !m.before && age < newFileAge
}

// mayOpen reports whether a thread may still be in the open(2) of an old creation, and not in a later
// fstat(2). If the number of the system call is inconclusive, the age decides; after a crash, it also decides
// for threads which this process may not inspect.
func mayOpen(by uint32, before bool, age time.Duration) bool {
	return !before && thread.BeginsAnew(by) || thread.IsSeenToBegin(by) || age < orphanreply.Fresh && thread.MayBegin(by)
}

// walked is a thread's last lookup: the kernel opens by inode.
type walked struct {
	ino  ids.Inode
	seen []*storepb.Observation
}

// cameBy returns the name by which a thread came to an inode, as of its lookup. It returns none without a
// lookup, such as through a file in /proc.
func (c *calls) cameBy(thread uint32, ino ids.Inode) []*storepb.Observation {
	w, _, found := c.walked.Take(thread, func(w walked) bool { return w.ino == ino })
	if found && c.lost {
		c.walked.Note(thread, walked{}) // see surelyCameBy
	}
	return w.seen
}

// surelyCameBy is cameBy for an operation which needs the name, if there was one. If a crash may have lost
// the name, it returns ESTALE: the kernel repeats a system call with a path once. A later lookup of the
// thread proves that nothing is lost, as a thread makes one system call after the other.
//
// The program gets the ESTALE if the process crashes a second time during the call.
func (c *calls) surelyCameBy(by uint32, ino ids.Inode) ([]*storepb.Observation, syscall.Errno) {
	if c.lost && by != 0 {
		if _, _, isKnown := c.walked.Get(by); !isKnown && thread.MayBegin(by) {
			c.walked.Note(by, walked{})
			return nil, syscall.ESTALE
		}
	}
	return c.cameBy(by, ino), 0
}

// entered is a directory whose attributes a thread got, as of a command.
type entered struct {
	dir   ids.Inode
	index ids.Index
}

// enterLimit is the longest time between a directory's attributes and a lookup in it within one system call.
const enterLimit = 100 * time.Millisecond

// enteredAt returns the oldest state which is new enough for a thread's lookup: the state of the directory's
// attributes in the same system call. 0: only the newest state.
//
// The kernel asks for a directory's attributes before each lookup there: it checks the search permission
// itself (default_permissions), and no attribute stays valid. So a thread got them last in this system call.
func (c *calls) enteredAt(thread uint32, dir ids.Inode) ids.Index {
	e, age, found := c.entered.Get(thread)
	if !found || e.dir != dir || age > enterLimit {
		return 0
	}
	return e.index
}
