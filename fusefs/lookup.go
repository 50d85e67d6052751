package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/kernel"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/storepb"
)

// Lookup answers ENOENT rather than an entry without inode, which the kernel could keep.
func (fs *fileSystem) Lookup(
	interrupted <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut,
) (code fuse.Status) {
	defer fs.observed("lookup", time.Now(), &code)
	at, errno := fs.enter(header, header.NodeId, name)
	if errno != 0 {
		return kernel.Status(errno)
	}
	result, errno := fs.query(thread.NewRequest(interrupted, header.Pid), &storepb.Query{
		Query: &storepb.Query_Lookup{Lookup: &storepb.Lookup{Parent: at.parent, Name: at.name}},
		Since: fs.enteredAt(header.Pid, at.parent),
	})
	if errno == 0 {
		kernel.FillEntry(out, result.GetAttr())
		fs.walks.Note(header.Pid, walked{result.GetAttr().GetIno(), result.GetLooks()})
	}
	if errno == 0 || errno == syscall.ENOENT {
		fs.resolve(header.Pid, at.parent, name, result.GetAttr().GetIno())
	}
	return kernel.Status(errno)
}

// entered is a directory whose attributes a thread was told, as of a command.
type entered struct{ dir, index uint64 }

// enterLimit is how long a thread may take from a directory's attributes to a name in it for both to be taken for parts of
// one system call.
const enterLimit = 100 * time.Millisecond

// enteredAt answers which state will do for a thread that looks up a name: one that is no older than that from which the
// directory's attributes came in the same system call. 0: only the newest will.
//
// The kernel has to ask for the attributes of a directory before each name that it looks up there: whether the caller may
// search it, it judges itself (default_permissions), and no attribute that it is told stays valid. So the last time that a
// thread was told them was in this system call.
func (fs *fileSystem) enteredAt(thread uint32, dir uint64) uint64 {
	e, age, found := fs.entered.Get(thread)
	if !found || e.dir != dir || age > enterLimit {
		return 0
	}
	return e.index
}

// Forget has nothing to do: node ids are inode numbers and need no table.
func (fs *fileSystem) Forget(uint64, uint64) {}

// Readlink answers the target of a symbolic link. It is a look at the lock that the link may be.
func (fs *fileSystem) Readlink(interrupted <-chan struct{}, header *fuse.InHeader) (target []byte, code fuse.Status) {
	defer fs.observed("readlink", time.Now(), &code)
	result, errno := fs.query(thread.NewRequest(interrupted, header.Pid), &storepb.Query{Query: &storepb.Query_Read{
		Read: &storepb.Read{Ino: header.NodeId, Name: nameOf(fs.cameBy(header.Pid, header.NodeId))},
	}})
	if errno != 0 {
		return nil, kernel.Status(kernel.OfInode(errno))
	}
	fs.saw(header.Caller, result.GetLooks(), read)
	return result.GetContent(), fuse.OK
}
