package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/lookguard"
	"lockfs/fusefs/orphanreply"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Create is open(2) with O_CREAT, for a name without an entry in the kernel. The kernel has then checked only
// the directory's permissions. So Create opens a file made elsewhere meanwhile only if the caller certainly
// has the permissions. Otherwise it returns ESTALE, once, and the VFS looks up and checks again.
func (fs *fileSystem) Create(
	interrupted <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut,
) (code fuse.Status) {
	defer fs.observed("create", time.Now(), &code)
	at, errno := fs.enter(&in.InHeader, ids.Inode(in.NodeId), name)
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	number := fs.files.Reserve()
	var seen uint64
	note := func(result *storepb.Result) {
		if result.GetCreated() {
			seen = fs.observations.Saw(in.Caller, result.GetObservations(), lookguard.Made)
		}
	}
	result, errno := fs.create(interrupted, at.caller, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: uint64(at.parent), Name: at.name, Mode: syscall.S_IFREG | in.Mode&fuseattr.PermissionBits,
		Exclusive: in.Flags&syscall.O_EXCL != 0,
	}}}, note, orphanreply.Create(&in.InHeader, number))
	if errno == syscall.ESTALE { // another kind of inode
		errno = fs.madeElsewhere(in.Pid, at, syscall.ENOENT)
	}
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	attr := result.GetAttr()
	if !result.GetCreated() && !fs.mayOpenNew(interrupted, in, attr) {
		return fuseattr.Status(fs.madeElsewhere(in.Pid, at, syscall.EACCES))
	}
	fs.again.Drop(in.Pid)
	inode := fs.inodes.use(ids.Inode(attr.GetIno()))
	handle := &fileHandle{inode: inode, by: []*storepb.Observation{{Parent: uint64(at.parent), Name: at.name}}}
	if !result.GetCreated() && len(result.GetObservations()) > 0 {
		handle.by = result.GetObservations()
	}
	if result.GetCreated() {
		inode.learn(content{version: attr.GetVersion()})
		handle.made(in.Pid, result.GetObservations(), seen)
	} else if in.Flags&syscall.O_TRUNC != 0 {
		if attr, errno = fs.emptyOpened(fs.truncation(interrupted, at.caller, handle.by), inode); errno != 0 {
			fs.release(at.caller, inode)
			return fuseattr.Status(errno)
		}
	}
	fuseattr.FillEntry(&out.EntryOut, attr)
	if result.GetCreated() {
		fs.calls.created.Note(in.Pid, made{attr: out.Attr})
	}
	fs.opened(number, handle, &out.OpenOut)
	return fuse.OK
}

// Open asks the cluster only to truncate, or under root squash: the kernel has just looked the file up and
// checked permissions.
func (fs *fileSystem) Open(interrupted <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) (code fuse.Status) {
	defer fs.observed("open", time.Now(), &code)
	if errno := fs.refuseRoot(interrupted, &in.InHeader, ids.Inode(in.NodeId), fuseattr.NeededToOpen(in.Flags)); errno != 0 {
		return fuseattr.Status(errno)
	}
	caller := fuseattr.CallerOf(&in.InHeader)
	name, errno := fs.calls.surelyCameBy(in.Pid, ids.Inode(in.NodeId))
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	handle := &fileHandle{inode: fs.inodes.use(ids.Inode(in.NodeId)), by: name}
	if in.Flags&syscall.O_TRUNC != 0 {
		if _, errno := fs.emptyOpened(fs.truncation(interrupted, caller, handle.by), handle.inode); errno != 0 {
			fs.release(caller, handle.inode)
			return fuseattr.Status(errno)
		}
	}
	fs.opened(fs.files.Reserve(), handle, out)
	return fuse.OK
}

// madeElsewhere handles a name that another host has made since the kernel's lookup. It returns ESTALE, so
// the kernel looks again; at the second time in a call it returns the given error.
func (fs *fileSystem) madeElsewhere(by uint32, at place, second syscall.Errno) syscall.Errno {
	if fs.again.wasSent(by, lookAgain{ino: at.parent, name: string(at.name)}) {
		return second
	}
	return syscall.ESTALE
}

// opened takes over the use of an inode from its caller.
func (fs *fileSystem) opened(number uint64, handle *fileHandle, out *fuse.OpenOut) {
	fs.open(number, handle)
	if fs.unnamed.has(handle.inode.ino) {
		fs.keepUnnamed(handle.inode.ino)
	}
	out.Fh, out.OpenFlags = number, fuse.FOPEN_DIRECT_IO
}

// Release comes some time after the last close, and no program waits for it.
func (fs *fileSystem) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	code := fuse.OK
	defer fs.observed("release", time.Now(), &code)
	if handle, found := fs.file(in.Fh, in.NodeId); found {
		fs.releaseLocks(in, handle)
		fs.files.Remove(in.Fh)
		fs.release(fuseattr.CallerOf(&in.InHeader), handle.inode)
		handle.locks.KeepIn(in.Fh, nil) // its place in the crash state may be reused
		fs.estate.Closed(in.Fh)
	}
}

// Fsync has nothing to do: writes are committed before they return.
func (fs *fileSystem) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }
