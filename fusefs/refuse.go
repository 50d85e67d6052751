package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/kernel"
)

// Tmpfile is refused: every inode begins with a name.
func (fs *fileSystem) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.ENOTSUP
}

// CopyFileRange is ENOSYS, upon which the kernel copies by reading and writing.
func (fs *fileSystem) CopyFileRange(<-chan struct{}, *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}

// Ioctl is refused as by any file that is no device.
func (fs *fileSystem) Ioctl(
	<-chan struct{}, *fuse.IoctlIn, []byte, *fuse.IoctlOut, []byte,
) fuse.Status {
	return kernel.Status(syscall.ENOTTY)
}
