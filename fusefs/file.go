package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Read asks for the content each time; what is known of it only spares sending it again.
func (fs *fileSystem) Read(_ <-chan struct{}, in *fuse.ReadIn, _ []byte) (data fuse.ReadResult, code fuse.Status) {
	defer fs.observed("read", time.Now(), &code)
	handle, found := fs.files.get(in.Fh)
	if !found {
		return nil, fuse.EBADF
	}
	now, errno := fs.current(handle.inode)
	if errno != 0 {
		return nil, status(errno)
	}
	size := uint64(len(now.data))
	start := min(in.Offset, size)
	end := min(start+uint64(in.Size), size)
	return fuse.ReadResultData(now.data[start:end]), fuse.OK
}

// Write is one commit. The descriptor's flags come with each request, as fcntl(2) changes them. Under
// O_APPEND the kernel's offset means nothing.
func (fs *fileSystem) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (written uint32, code fuse.Status) {
	defer fs.observed("write", time.Now(), &code)
	handle, found := fs.files.get(in.Fh)
	if !found {
		return 0, fuse.EBADF
	}
	if len(data) == 0 {
		return 0, fuse.OK
	}
	do := writeAt(in.Offset, data)
	if in.Flags&syscall.O_APPEND != 0 {
		do = appendTo(data)
	}
	if _, errno := fs.change(callerOf(&in.InHeader), handle.inode, do); errno != 0 {
		return 0, status(errno)
	}
	return uint32(len(data)), fuse.OK
}

// Fallocate knows how to extend a file. Space beyond the end needs no keeping (FALLOC_FL_KEEP_SIZE);
// there are no holes to punch.
func (fs *fileSystem) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) (code fuse.Status) {
	defer fs.observed("fallocate", time.Now(), &code)
	handle, found := fs.files.get(in.Fh)
	switch {
	case !found:
		return fuse.EBADF
	case in.Mode == unix.FALLOC_FL_KEEP_SIZE:
		return fuse.OK
	case in.Mode != 0:
		return fuse.ENOTSUP
	}
	end := in.Offset + in.Length
	if end < in.Offset {
		return status(syscall.EFBIG)
	}
	_, errno := fs.change(callerOf(&in.InHeader), handle.inode, extend(end))
	return status(errno)
}

// Lseek is asked for data and holes only. A file is data up to its end, where the one hole is.
func (fs *fileSystem) Lseek(_ <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) (code fuse.Status) {
	defer fs.observed("lseek", time.Now(), &code)
	attr, errno := fs.attr(in.NodeId)
	switch {
	case errno != 0:
		return status(errno)
	case in.Offset >= attr.GetSize():
		return status(syscall.ENXIO)
	}
	switch in.Whence {
	case unix.SEEK_DATA:
		out.Offset = in.Offset
	case unix.SEEK_HOLE:
		out.Offset = attr.GetSize()
	default:
		return fuse.EINVAL
	}
	return fuse.OK
}
