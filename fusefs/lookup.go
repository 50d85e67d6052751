package fusefs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// Lookup answers ENOENT rather than an entry without inode, which the kernel could keep.
func (fs *fileSystem) Lookup(
	_ <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut,
) (code fuse.Status) {
	defer fs.observed("lookup", time.Now(), &code)
	at, errno := fs.enter(header, header.NodeId, name)
	if errno != 0 {
		return status(errno)
	}
	result, errno := fs.query(&storepb.Query{Query: &storepb.Query_Lookup{
		Lookup: &storepb.Lookup{Parent: at.parent, Name: at.name},
	}})
	if errno == 0 {
		fillEntry(out, result.GetAttr())
		fs.walks.note(header.Pid, walked{result.GetAttr().GetIno(), result.GetLooks()})
	}
	return status(errno)
}

// Forget has nothing to do: node ids are inode numbers and need no table.
func (fs *fileSystem) Forget(uint64, uint64) {}

// Readlink answers the target of a symbolic link.
func (fs *fileSystem) Readlink(_ <-chan struct{}, header *fuse.InHeader) (target []byte, code fuse.Status) {
	defer fs.observed("readlink", time.Now(), &code)
	result, errno := fs.query(&storepb.Query{Query: &storepb.Query_Read{
		Read: &storepb.Read{Ino: header.NodeId},
	}})
	if errno != 0 {
		return nil, status(ofInode(errno))
	}
	return result.GetContent(), fuse.OK
}
