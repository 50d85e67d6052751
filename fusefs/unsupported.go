package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/kernel"
)

// Tmpfile returns ENOTSUP: every inode begins with a name.
func (fs *fileSystem) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.ENOTSUP
}

// CopyFileRange returns ENOSYS, so the kernel copies by reading and writing.
func (fs *fileSystem) CopyFileRange(<-chan struct{}, *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}

// Ioctl returns ENOTTY, as for any file but devices.
func (fs *fileSystem) Ioctl(
	<-chan struct{}, *fuse.IoctlIn, []byte, *fuse.IoctlOut, []byte,
) fuse.Status {
	return kernel.Status(syscall.ENOTTY)
}
