package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/lookguard"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// Lookup returns ENOENT rather than an entry without inode, which the kernel could cache.
func (fs *fileSystem) Lookup(
	interrupted <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut,
) (code fuse.Status) {
	defer fs.observed("lookup", time.Now(), &code)
	at, errno := fs.enter(header, ids.Inode(header.NodeId), name)
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	if errno := fs.refuseRoot(interrupted, header, at.parent, namespace.MaySearch); errno != 0 {
		return fuseattr.Status(errno)
	}
	result, errno := fs.query(thread.NewRequest(interrupted, header.Pid), &storepb.Query{
		Query: &storepb.Query_Lookup{Lookup: &storepb.Lookup{Parent: uint64(at.parent), Name: at.name}},
		Since: uint64(fs.calls.enteredAt(header.Pid, at.parent)),
	})
	if errno == 0 {
		fuseattr.FillEntry(out, result.GetAttr())
		fs.calls.walked.Note(header.Pid, walked{ids.Inode(result.GetAttr().GetIno()), result.GetObservations()})
	}
	if errno == 0 || errno == syscall.ENOENT {
		fs.judgements.resolve(header.Pid, at.parent, name, ids.Inode(result.GetAttr().GetIno()))
	}
	return fuseattr.Status(errno)
}

// Forget has nothing to do: node ids need no table.
func (fs *fileSystem) Forget(uint64, uint64) {}

// Readlink returns the target of a symbolic link. It counts as an observation of a lock.
func (fs *fileSystem) Readlink(interrupted <-chan struct{}, header *fuse.InHeader) (target []byte, code fuse.Status) {
	defer fs.observed("readlink", time.Now(), &code)
	name, errno := fs.calls.surelyCameBy(header.Pid, ids.Inode(header.NodeId))
	if errno != 0 {
		return nil, fuseattr.Status(errno)
	}
	result, errno := fs.query(thread.NewRequest(interrupted, header.Pid), &storepb.Query{Query: &storepb.Query_Read{
		Read: &storepb.Read{Ino: header.NodeId, Name: nameOf(name)},
	}})
	if errno != 0 {
		return nil, fuseattr.Status(fuseattr.OfInode(errno))
	}
	fs.observations.Saw(header.Caller, result.GetObservations(), lookguard.Read)
	return result.GetContent(), fuse.OK
}
