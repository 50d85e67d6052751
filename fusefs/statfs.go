package fusefs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/kernel"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// StatFs returns as size the cluster's limit, or the directory's quota if it leaves less. It returns as
// available the caller's remaining share.
func (fs *fileSystem) StatFs(interrupted <-chan struct{}, header *fuse.InHeader, out *fuse.StatfsOut) (code fuse.Status) {
	defer fs.observed("statfs", time.Now(), &code)
	query := &storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{Uid: header.Uid, Ino: header.NodeId}}}
	result, errno := fs.query(thread.NewRequest(interrupted, header.Pid), query)
	if errno != 0 {
		return kernel.Status(errno)
	}
	stats := result.GetFsStats()
	used := (stats.GetBytes() + kernel.BlockSize - 1) / kernel.BlockSize
	out.Files = max(stats.GetMaxInodes(), stats.GetInodes())
	out.Ffree = out.Files - stats.GetInodes()
	out.Blocks = max(stats.GetMaxBytes()/kernel.BlockSize, used)
	out.Bfree = out.Blocks - used
	out.Bavail = min(stats.GetFreeBytes()/kernel.BlockSize, out.Bfree)
	out.Bsize, out.Frsize = kernel.BlockSize, kernel.BlockSize
	out.NameLen = namespace.MaxName
	return fuse.OK
}
