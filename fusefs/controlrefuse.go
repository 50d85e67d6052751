package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/kernel"
)

// What the control directory refuses, and the formalities. It never answers ENOSYS: the kernel would take
// that for an answer about the whole mount, and ask for the files too no more.

func (c *control) SetAttr(<-chan struct{}, *fuse.SetAttrIn, *fuse.AttrOut) fuse.Status {
	return fuse.EPERM
}

func (c *control) Mknod(<-chan struct{}, *fuse.MknodIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (c *control) Mkdir(<-chan struct{}, *fuse.MkdirIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (c *control) Symlink(<-chan struct{}, *fuse.InHeader, string, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (c *control) Link(<-chan struct{}, *fuse.LinkIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (c *control) Rename(<-chan struct{}, *fuse.RenameIn, string, string) fuse.Status {
	return fuse.EPERM
}

func (c *control) Create(<-chan struct{}, *fuse.CreateIn, string, *fuse.CreateOut) fuse.Status {
	return fuse.EPERM
}

func (c *control) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.ENOTSUP
}

func (c *control) Write(<-chan struct{}, *fuse.WriteIn, []byte) (uint32, fuse.Status) {
	return 0, fuse.EPERM
}

func (c *control) Fallocate(<-chan struct{}, *fuse.FallocateIn) fuse.Status { return fuse.EPERM }

// CopyFileRange is one of two files of which one at least is here; the kernel then reads and writes.
func (c *control) CopyFileRange(<-chan struct{}, *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return 0, fuse.ENOTSUP
}

func (c *control) SetXAttr(<-chan struct{}, *fuse.SetXAttrIn, string, []byte) fuse.Status {
	return fuse.EPERM
}

func (c *control) RemoveXAttr(<-chan struct{}, *fuse.InHeader, string) fuse.Status { return fuse.EPERM }

func (c *control) GetXAttr(_ <-chan struct{}, _ *fuse.InHeader, name string, _ []byte) (uint32, fuse.Status) {
	if errno := kernel.CheckXattr(name); errno != 0 {
		return 0, kernel.Status(errno)
	}
	return 0, fuse.ENODATA
}

func (c *control) ListXAttr(<-chan struct{}, *fuse.InHeader, []byte) (uint32, fuse.Status) {
	return 0, fuse.OK
}

func (c *control) GetLk(<-chan struct{}, *fuse.LkIn, *fuse.LkOut) fuse.Status {
	return kernel.Status(syscall.ENOLCK)
}

func (c *control) SetLk(<-chan struct{}, *fuse.LkIn) fuse.Status {
	return kernel.Status(syscall.ENOLCK)
}

func (c *control) SetLkw(<-chan struct{}, *fuse.LkIn) fuse.Status {
	return kernel.Status(syscall.ENOLCK)
}

func (c *control) Ioctl(<-chan struct{}, *fuse.IoctlIn, []byte, *fuse.IoctlOut, []byte) fuse.Status {
	return kernel.Status(syscall.ENOTTY)
}

// Lseek is asked for data and holes only, and nobody knows where a control file ends.
func (c *control) Lseek(<-chan struct{}, *fuse.LseekIn, *fuse.LseekOut) fuse.Status {
	return fuse.EINVAL
}

func (c *control) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

func (c *control) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (c *control) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }

func (c *control) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }
