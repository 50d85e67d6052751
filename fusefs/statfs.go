package fusefs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// StatFs tells the limits for all together as the size, and as available what its caller may still use of it.
func (fs *fileSystem) StatFs(interrupted <-chan struct{}, header *fuse.InHeader, out *fuse.StatfsOut) (code fuse.Status) {
	defer fs.observed("statfs", time.Now(), &code)
	query := &storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{Uid: header.Uid}}}
	result, errno := fs.query(request{interrupted, header.Pid}, query)
	if errno != 0 {
		return status(errno)
	}
	stats := result.GetFsStats()
	used := (stats.GetBytes() + blockSize - 1) / blockSize
	out.Files = max(stats.GetMaxInodes(), stats.GetInodes())
	out.Ffree = out.Files - stats.GetInodes()
	out.Blocks = max(stats.GetMaxBytes()/blockSize, used)
	out.Bfree = out.Blocks - used
	out.Bavail = min(stats.GetFreeBytes()/blockSize, out.Bfree)
	out.Bsize, out.Frsize = blockSize, blockSize
	out.NameLen = namespace.MaxName
	return fuse.OK
}
