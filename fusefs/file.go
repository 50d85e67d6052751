package fusefs

import (
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/lookguard"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
)

// Read asks for the content each time; known content only saves the transfer. It counts as an observation of
// the lock.
func (fs *fileSystem) Read(interrupted <-chan struct{}, in *fuse.ReadIn, _ []byte) (data fuse.ReadResult, code fuse.Status) {
	defer fs.observed("read", time.Now(), &code)
	handle, found := fs.file(in.Fh, in.NodeId)
	if !found {
		return nil, fuse.EBADF
	}
	if handle.locks.IsLost() {
		return nil, fuse.EIO
	}
	now, seen, errno := fs.current(thread.NewRequest(interrupted, in.Pid), handle.inode, nameOf(handle.name()))
	if errno == 0 && fs.lost(handle) {
		errno = syscall.EIO
	}
	if errno != 0 {
		return nil, fuseattr.Status(errno)
	}
	handle.saw(fs.observations, in.Caller, seen, lookguard.Read)
	size := uint64(len(now.data))
	start := min(in.Offset, size)
	end := min(start+uint64(in.Size), size)
	return fuse.ReadResultData(now.data[start:end]), fuse.OK
}

// Write is one commit. Each request carries the descriptor's flags, which fcntl(2) changes. With O_APPEND it
// ignores the kernel's offset.
func (fs *fileSystem) Write(interrupted <-chan struct{}, in *fuse.WriteIn, data []byte) (written uint32, code fuse.Status) {
	defer fs.observed("write", time.Now(), &code)
	handle, found := fs.file(in.Fh, in.NodeId)
	if !found {
		return 0, fuse.EBADF
	}
	if len(data) == 0 {
		return 0, fuse.OK
	}
	if handle.locks.IsLost() {
		return 0, fuse.EIO
	}
	do := writeAt(in.Offset, data)
	if in.Flags&syscall.O_APPEND != 0 {
		do = appendTo(data)
	}
	by := writer{interrupted: interrupted, caller: fuseattr.CallerOf(&in.InHeader), name: nameOf(handle.name()), session: handle.locks.Session(0)}
	attr, seen, errno := fs.change(by, handle.inode, do)
	if errno != 0 {
		return 0, fuseattr.Status(errno)
	}
	if in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0 {
		fs.dropSetID(by.caller, attr)
	}
	if len(seen) > 0 {
		handle.saw(fs.observations, in.Caller, seen, lookguard.Made)
	}
	return uint32(len(data)), fuse.OK
}

// Fallocate extends a file or fills a range with zeros, as a hole. It reserves no space beyond the end
// (FALLOC_FL_KEEP_SIZE).
func (fs *fileSystem) Fallocate(interrupted <-chan struct{}, in *fuse.FallocateIn) (code fuse.Status) {
	defer fs.observed("fallocate", time.Now(), &code)
	handle, found := fs.file(in.Fh, in.NodeId)
	if !found {
		return fuse.EBADF
	}
	end := in.Offset + in.Length
	if end < in.Offset {
		return fuseattr.Status(syscall.EFBIG)
	}
	do := extend(end)
	switch in.Mode {
	case 0:
	case unix.FALLOC_FL_KEEP_SIZE:
		return fuse.OK
	case unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_ZERO_RANGE | unix.FALLOC_FL_KEEP_SIZE:
		do = clearRange(in.Offset, end)
	case unix.FALLOC_FL_ZERO_RANGE:
		do = func(old []byte) ([]byte, syscall.Errno) {
			longer, errno := extend(end)(old)
			if errno != 0 {
				return nil, errno
			}
			return clearRange(in.Offset, end)(longer)
		}
	default:
		return fuse.ENOTSUP
	}
	by := writer{interrupted: interrupted, caller: fuseattr.CallerOf(&in.InHeader), name: nameOf(handle.name()), session: handle.locks.Session(0)}
	_, _, errno := fs.change(by, handle.inode, do)
	return fuseattr.Status(errno)
}

// clearRange fills a range of existing content with zeros.
func clearRange(start, end uint64) edit {
	return func(old []byte) ([]byte, syscall.Errno) {
		changed := slices.Clone(old)
		size := uint64(len(changed))
		clear(changed[min(start, size):min(end, size)])
		return changed, 0
	}
}

// Lseek handles only SEEK_DATA and SEEK_HOLE. A file is data up to its end, which is the only hole.
func (fs *fileSystem) Lseek(interrupted <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) (code fuse.Status) {
	defer fs.observed("lseek", time.Now(), &code)
	attr, errno := fs.attr(thread.NewRequest(interrupted, in.Pid), ids.Inode(in.NodeId))
	switch {
	case errno != 0:
		return fuseattr.Status(errno)
	case in.Offset >= attr.GetSize():
		return fuseattr.Status(syscall.ENXIO)
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
