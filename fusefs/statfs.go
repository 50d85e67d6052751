package fusefs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore"
	"lockfs/raftstore/storepb"
)

// StatFs reckons each inode that may still be made with the largest content it can have: the limit is on
// inodes, not on bytes.
func (fs *fileSystem) StatFs(interrupted <-chan struct{}, header *fuse.InHeader, out *fuse.StatfsOut) (code fuse.Status) {
	defer fs.observed("statfs", time.Now(), &code)
	result, errno := fs.query(request{interrupted, header.Pid}, &storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{}}})
	if errno != 0 {
		return status(errno)
	}
	stats := result.GetFsStats()
	used := (stats.GetContentBytes() + blockSize - 1) / blockSize
	out.Files = max(stats.GetMaxInodes(), stats.GetInodes())
	out.Ffree = out.Files - stats.GetInodes()
	out.Bfree = out.Ffree * (raftstore.MaxContent / blockSize)
	out.Bavail = out.Bfree
	out.Blocks = out.Bfree + used
	out.Bsize, out.Frsize = blockSize, blockSize
	out.NameLen = raftstore.MaxName
	return fuse.OK
}
