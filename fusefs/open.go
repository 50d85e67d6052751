package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// fileHandle is one open regular file.
type fileHandle struct {
	inode *inode
}

// Create is open(2) with O_CREAT of a name that the kernel did not find. Permissions are checked only of
// the directory then, so a file that came into being meanwhile elsewhere is opened here only if the
// caller may do that for sure. Otherwise the answer is ESTALE and the VFS looks again and judges itself.
func (fs *fileSystem) Create(
	interrupted <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut,
) (code fuse.Status) {
	defer fs.observed("create", time.Now(), &code)
	at, errno := fs.enter(&in.InHeader, in.NodeId, name)
	if errno != 0 {
		return status(errno)
	}
	result, errno := fs.create(interrupted, at.caller, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: at.parent, Name: at.name, Mode: syscall.S_IFREG | in.Mode&permissionBits,
		Exclusive: in.Flags&syscall.O_EXCL != 0,
	}}}, createAnswer(&in.InHeader))
	if errno != 0 {
		return status(errno)
	}
	attr := result.GetAttr()
	if !result.GetCreated() && !mayOpen(attr, at.caller, in.Flags) {
		return status(syscall.ESTALE)
	}
	inode := fs.inodes.use(attr.GetIno())
	if result.GetCreated() {
		inode.learn(content{version: attr.GetVersion()})
		fs.newFiles.note(in.Pid, attr)
	} else if in.Flags&syscall.O_TRUNC != 0 {
		if attr, errno = fs.change(at.caller, inode, resize(0)); errno != 0 {
			fs.release(at.caller, inode)
			return status(errno)
		}
	}
	fillEntry(&out.EntryOut, attr)
	fs.opened(inode, &out.OpenOut)
	return fuse.OK
}

// Open asks nothing unless it truncates: the kernel has just looked the file up and checked permissions.
func (fs *fileSystem) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) (code fuse.Status) {
	defer fs.observed("open", time.Now(), &code)
	caller := callerOf(&in.InHeader)
	inode := fs.inodes.use(in.NodeId)
	if in.Flags&syscall.O_TRUNC != 0 {
		if _, errno := fs.change(caller, inode, resize(0)); errno != 0 {
			fs.release(caller, inode)
			return status(errno)
		}
	}
	fs.opened(inode, out)
	return fuse.OK
}

// opened takes over the use of an inode that its caller began.
func (fs *fileSystem) opened(inode *inode, out *fuse.OpenOut) {
	out.Fh = fs.files.add(&fileHandle{inode: inode})
	out.OpenFlags = fuse.FOPEN_DIRECT_IO
}

// Release comes some time after the last close; nobody waits for it.
func (fs *fileSystem) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	code := fuse.OK
	defer fs.observed("release", time.Now(), &code)
	if handle, found := fs.files.remove(in.Fh); found {
		fs.release(callerOf(&in.InHeader), handle.inode)
	}
}

// Flush has nothing to do: a write has been committed when it returns.
func (fs *fileSystem) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

// Fsync has nothing to do, as Flush.
func (fs *fileSystem) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }

// mayOpen tells whether a caller is sure to have the permissions that open flags ask for. Of a group it
// is never sure, for a request does not say all the groups that its caller belongs to.
func mayOpen(attr *storepb.Attr, caller *storepb.Caller, flags uint32) bool {
	var need uint32
	switch flags & syscall.O_ACCMODE {
	case syscall.O_RDONLY:
		need = 0o4
	case syscall.O_WRONLY:
		need = 0o2
	default:
		need = 0o6
	}
	if flags&syscall.O_TRUNC != 0 {
		need |= 0o2
	}
	owner, group, other := attr.GetMode()>>6, attr.GetMode()>>3, attr.GetMode()
	switch caller.GetUid() {
	case 0:
		return true
	case attr.GetUid():
		return owner&need == need
	default:
		return group&other&need == need
	}
}
