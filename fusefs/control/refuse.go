package control

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
)

// Refusals and formalities of the control directory. It never returns ENOSYS: the kernel would then stop such
// requests for the whole mount.

func (c *directory) SetAttr(<-chan struct{}, *fuse.SetAttrIn, *fuse.AttrOut) fuse.Status {
	return fuse.EPERM
}

func (c *directory) Mknod(<-chan struct{}, *fuse.MknodIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (c *directory) Mkdir(<-chan struct{}, *fuse.MkdirIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (c *directory) Symlink(<-chan struct{}, *fuse.InHeader, string, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (c *directory) Link(<-chan struct{}, *fuse.LinkIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (c *directory) Rename(<-chan struct{}, *fuse.RenameIn, string, string) fuse.Status {
	return fuse.EPERM
}

func (c *directory) Create(<-chan struct{}, *fuse.CreateIn, string, *fuse.CreateOut) fuse.Status {
	return fuse.EPERM
}

func (c *directory) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.ENOTSUP
}

func (c *directory) Write(<-chan struct{}, *fuse.WriteIn, []byte) (uint32, fuse.Status) {
	return 0, fuse.EPERM
}

func (c *directory) Fallocate(<-chan struct{}, *fuse.FallocateIn) fuse.Status { return fuse.EPERM }

// CopyFileRange involves a file of this directory; after the refusal the kernel reads and writes.
func (c *directory) CopyFileRange(<-chan struct{}, *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return 0, fuse.ENOTSUP
}

func (c *directory) SetXAttr(<-chan struct{}, *fuse.SetXAttrIn, string, []byte) fuse.Status {
	return fuse.EPERM
}

func (c *directory) RemoveXAttr(<-chan struct{}, *fuse.InHeader, string) fuse.Status {
	return fuse.EPERM
}

func (c *directory) GetXAttr(_ <-chan struct{}, _ *fuse.InHeader, name string, _ []byte) (uint32, fuse.Status) {
	if errno := fuseattr.CheckXattr(name); errno != 0 {
		return 0, fuseattr.Status(errno)
	}
	return 0, fuse.ENODATA
}

func (c *directory) ListXAttr(<-chan struct{}, *fuse.InHeader, []byte) (uint32, fuse.Status) {
	return 0, fuse.OK
}

func (c *directory) GetLk(<-chan struct{}, *fuse.LkIn, *fuse.LkOut) fuse.Status {
	return fuseattr.Status(syscall.ENOLCK)
}

func (c *directory) SetLk(<-chan struct{}, *fuse.LkIn) fuse.Status {
	return fuseattr.Status(syscall.ENOLCK)
}

func (c *directory) SetLkw(<-chan struct{}, *fuse.LkIn) fuse.Status {
	return fuseattr.Status(syscall.ENOLCK)
}

func (c *directory) Ioctl(<-chan struct{}, *fuse.IoctlIn, []byte, *fuse.IoctlOut, []byte) fuse.Status {
	return fuseattr.Status(syscall.ENOTTY)
}

// Lseek is sent for data and holes only, and control files have no known end.
func (c *directory) Lseek(<-chan struct{}, *fuse.LseekIn, *fuse.LseekOut) fuse.Status {
	return fuse.EINVAL
}

func (c *directory) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

func (c *directory) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (c *directory) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }

func (c *directory) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }
