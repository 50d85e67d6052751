package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/lookguard"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// GetAttr also handles fstat: the request does not distinguish it from stat.
func (fs *fileSystem) GetAttr(interrupted <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) (code fuse.Status) {
	defer fs.observed("getattr", time.Now(), &code)
	created, age, opens, fresh := fs.calls.justCreated(in.Pid, ids.Inode(in.NodeId))
	if fresh {
		out.Attr = created.attr
		return fuse.OK
	}
	if !opens {
		fs.goesOn(in.Pid)
	}
	result, errno := fs.getAttr(thread.NewRequest(interrupted, in.Pid), ids.Inode(in.NodeId))
	if opens && errno != 0 && errno != syscall.ESTALE && mayOpen(in.Pid, created.before, age) { // not gone
		out.Attr = created.attr
		return fuse.OK
	}
	if errno == 0 {
		fuseattr.FillAttr(&out.Attr, result.GetAttr())
		fs.calls.entered.Note(in.Pid, entered{ids.Inode(in.NodeId), ids.Index(result.GetIndex())})
	}
	return fuseattr.Status(fs.goneTwice(in.Pid, ids.Inode(in.NodeId), errno))
}

// Statx is sent for the time of birth, which GetAttr has not.
func (fs *fileSystem) Statx(interrupted <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) (code fuse.Status) {
	defer fs.observed("statx", time.Now(), &code)
	attr, errno := fs.attr(thread.NewRequest(interrupted, in.Pid), ids.Inode(in.NodeId))
	if errno == 0 {
		fuseattr.FillStatx(&out.Statx, attr)
	}
	return fuseattr.Status(fs.goneTwice(in.Pid, ids.Inode(in.NodeId), errno))
}

func (fs *fileSystem) attr(by thread.Request, ino ids.Inode) (*storepb.Attr, syscall.Errno) {
	result, errno := fs.getAttr(by, ino)
	return result.GetAttr(), errno
}

func (fs *fileSystem) getAttr(by thread.Request, ino ids.Inode) (*storepb.Result, syscall.Errno) {
	result, errno := fs.query(by, &storepb.Query{Query: &storepb.Query_GetAttr{
		GetAttr: &storepb.GetAttr{Ino: uint64(ino)},
	}})
	if errno == 0 {
		fs.seen(result.GetAttr())
	}
	return result, fuseattr.OfInode(errno)
}

// goneTwice turns the second ESTALE about a missing inode into ENOENT: the path leads there again, as from a
// removed working directory. A descriptor of a file keeps its ESTALE.
func (fs *fileSystem) goneTwice(by uint32, ino ids.Inode, errno syscall.Errno) syscall.Errno {
	if errno != syscall.ESTALE || fs.inodes.isUsed(ino) || !fs.again.wasSent(by, lookAgain{ino: ino}) {
		return errno
	}
	return syscall.ENOENT
}

// Access is never sent: the kernel itself checks modes and owners (default_permissions).
func (fs *fileSystem) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

// SetAttr changes the size first: this part can fail, and it sets the times to now.
func (fs *fileSystem) SetAttr(interrupted <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) (code fuse.Status) {
	defer fs.observed("setattr", time.Now(), &code)
	var attr *storepb.Attr
	var errno syscall.Errno
	change, wanted := attrChange(in)
	size, resized := in.GetSize()
	if resized {
		if attr, errno = fs.setSize(interrupted, in, size); errno != 0 {
			return fuseattr.Status(errno)
		}
	}
	switch {
	case wanted:
		attr, errno = fs.setAttr(interrupted, fuseattr.CallerOf(&in.InHeader), change)
	case !resized:
		attr, errno = fs.attr(thread.NewRequest(interrupted, in.Pid), ids.Inode(in.NodeId))
	}
	if errno == 0 {
		fuseattr.FillAttr(&out.Attr, attr)
	}
	return fuseattr.Status(errno)
}

// setSize is truncate(2) after a lookup, or ftruncate(2) of an open file.
func (fs *fileSystem) setSize(interrupted <-chan struct{}, in *fuse.SetAttrIn, size uint64) (*storepb.Attr, syscall.Errno) {
	caller := fuseattr.CallerOf(&in.InHeader)
	var by []*storepb.Observation
	var session ids.Session
	fh, _ := in.GetFh()
	if handle, found := fs.file(fh, in.NodeId); found {
		by, session = handle.name(), handle.locks.Session(0)
	} else if name, errno := fs.calls.surelyCameBy(in.Pid, ids.Inode(in.NodeId)); errno == 0 {
		by = name
	} else {
		return nil, errno
	}
	inode := fs.inodes.use(ids.Inode(in.NodeId))
	defer fs.release(caller, inode)
	truncation := fs.truncation(interrupted, caller, by)
	truncation.session = session
	attr, seen, errno := fs.change(truncation, inode, resize(size))
	fs.observations.Saw(in.Caller, seen, lookguard.Made)
	return attr, errno
}

func (fs *fileSystem) setAttr(
	interrupted <-chan struct{}, caller *storepb.Caller, change *storepb.SetAttr,
) (*storepb.Attr, syscall.Errno) {
	result, errno := fs.mutate(interrupted, caller, &storepb.Op{Op: &storepb.Op_SetAttr{SetAttr: change}})
	return result.GetAttr(), fuseattr.OfInode(errno)
}

// empty is the O_TRUNC of an open. It assumes that only root could set the bits of dropSetID: an open does
// not carry this information.
func (fs *fileSystem) empty(by writer, in *inode) (*storepb.Attr, syscall.Errno) {
	attr, _, errno := fs.change(by, in, resize(0))
	if errno == 0 && by.caller.GetUid() != 0 {
		fs.dropSetID(by.caller, attr)
	}
	return attr, errno
}

// emptyOpened is empty for an open(2) under way. If another host has just removed the lock, the kernel looks
// again, once. At a second such lock the open succeeds, and a write returns ESTALE: calls by path never do.
func (fs *fileSystem) emptyOpened(by writer, in *inode) (*storepb.Attr, syscall.Errno) {
	attr, errno := fs.empty(by, in)
	if errno != syscall.ESTALE {
		fs.again.Drop(by.caller.GetPid())
		return attr, errno
	}
	thread := thread.NewRequest(by.interrupted, by.caller.GetPid())
	if now, gone := fs.attr(thread, in.ino); gone == 0 && now.GetNlink() == 0 && fs.again.wasSent(by.caller.GetPid(), lookAgain{name: "O_TRUNC"}) {
		return now, 0
	}
	return nil, errno
}

// dropSetID clears the set-user-ID and set-group-ID bits after a write of a caller without the right to set
// them. The write is done, so a failure only goes to the log.
func (fs *fileSystem) dropSetID(caller *storepb.Caller, written *storepb.Attr) {
	const asGroup = syscall.S_ISGID | syscall.S_IXGRP
	mode := written.GetMode() &^ syscall.S_ISUID
	if mode&asGroup == asGroup {
		mode &^= syscall.S_ISGID
	}
	if mode == written.GetMode() {
		return
	}
	mode &= fuseattr.PermissionBits
	if _, errno := fs.setAttr(nil, caller, &storepb.SetAttr{Ino: written.GetIno(), Mode: &mode}); errno != 0 {
		fs.logger.Warn("set-user-ID stays after a write", "ino", written.GetIno(), "error", errno)
	}
}

// attrChange returns the changes besides the size. "Now" stays symbolic: the mount does not know cluster
// time.
func attrChange(in *fuse.SetAttrIn) (change *storepb.SetAttr, wanted bool) {
	change = &storepb.SetAttr{Ino: in.NodeId}
	if mode, set := in.GetMode(); set {
		change.Mode, wanted = &mode, true
	}
	if uid, set := in.GetUID(); set {
		change.Uid, wanted = &uid, true
	}
	if gid, set := in.GetGID(); set {
		change.Gid, wanted = &gid, true
	}
	switch {
	case in.Valid&fuse.FATTR_ATIME_NOW != 0:
		change.AtimeNow, wanted = true, true
	case in.Valid&fuse.FATTR_ATIME != 0:
		change.Atime, wanted = fuseattr.Nanoseconds(in.Atime, in.Atimensec), true
	}
	switch {
	case in.Valid&fuse.FATTR_MTIME_NOW != 0:
		_, resized := in.GetSize() // which sets it
		change.MtimeNow, wanted = true, wanted || !resized
	case in.Valid&fuse.FATTR_MTIME != 0:
		change.Mtime, wanted = fuseattr.Nanoseconds(in.Mtime, in.Mtimensec), true
	}
	return change, wanted
}

// StatFs returns as size the cluster's limit, or the directory's quota if it leaves less. It returns as
// available the caller's remaining share.
func (fs *fileSystem) StatFs(interrupted <-chan struct{}, header *fuse.InHeader, out *fuse.StatfsOut) (code fuse.Status) {
	defer fs.observed("statfs", time.Now(), &code)
	query := &storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{Uid: header.Uid, Ino: header.NodeId}}}
	result, errno := fs.query(thread.NewRequest(interrupted, header.Pid), query)
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	stats := result.GetFsStats()
	used := (stats.GetBytes() + fuseattr.BlockSize - 1) / fuseattr.BlockSize
	out.Files = max(stats.GetMaxInodes(), stats.GetInodes())
	out.Ffree = out.Files - stats.GetInodes()
	out.Blocks = max(stats.GetMaxBytes()/fuseattr.BlockSize, used)
	out.Bfree = out.Blocks - used
	out.Bavail = min(stats.GetFreeBytes()/fuseattr.BlockSize, out.Bfree)
	out.Bsize, out.Frsize = fuseattr.BlockSize, fuseattr.BlockSize
	out.NameLen = namespace.MaxName
	return fuse.OK
}
