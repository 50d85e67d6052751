package fusefs

import (
	"math"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// GetAttr answers fstat too: the kernel does not tell it from stat.
func (fs *fileSystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) (code fuse.Status) {
	defer fs.observed("getattr", time.Now(), &code)
	if attr, found := fs.newFiles.take(in.Pid, in.NodeId); found {
		fillAttr(&out.Attr, attr)
		return fuse.OK
	}
	attr, errno := fs.attr(in.NodeId)
	if errno == 0 {
		fillAttr(&out.Attr, attr)
	}
	return status(errno)
}

// Statx is asked when somebody wants the time of birth, which GetAttr cannot tell.
func (fs *fileSystem) Statx(_ <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) (code fuse.Status) {
	defer fs.observed("statx", time.Now(), &code)
	attr, errno := fs.attr(in.NodeId)
	if errno == 0 {
		fillStatx(&out.Statx, attr)
	}
	return status(errno)
}

func (fs *fileSystem) attr(ino uint64) (*storepb.Attr, syscall.Errno) {
	result, errno := fs.query(&storepb.Query{Query: &storepb.Query_GetAttr{
		GetAttr: &storepb.GetAttr{Ino: ino},
	}})
	return result.GetAttr(), ofInode(errno)
}

// Access is not asked, since the kernel itself judges by modes and owners (default_permissions).
func (fs *fileSystem) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

// SetAttr changes the size first: it is the part that can fail, and it sets the times to now.
func (fs *fileSystem) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) (code fuse.Status) {
	defer fs.observed("setattr", time.Now(), &code)
	var attr *storepb.Attr
	var errno syscall.Errno
	change, wanted := attrChange(in)
	size, resized := in.GetSize()
	if resized {
		if attr, errno = fs.setSize(&in.InHeader, size); errno != 0 {
			return status(errno)
		}
	}
	switch {
	case wanted:
		attr, errno = fs.setAttr(callerOf(&in.InHeader), change)
	case !resized:
		attr, errno = fs.attr(in.NodeId)
	}
	if errno == 0 {
		fillAttr(&out.Attr, attr)
	}
	return status(errno)
}

func (fs *fileSystem) setSize(header *fuse.InHeader, size uint64) (*storepb.Attr, syscall.Errno) {
	caller := callerOf(header)
	inode := fs.inodes.use(header.NodeId)
	defer fs.release(caller, inode)
	return fs.change(caller, inode, resize(size))
}

func (fs *fileSystem) setAttr(
	caller *storepb.Caller, change *storepb.SetAttr,
) (*storepb.Attr, syscall.Errno) {
	result, errno := fs.mutate(caller, &storepb.Op{Op: &storepb.Op_SetAttr{SetAttr: change}})
	return result.GetAttr(), ofInode(errno)
}

// attrChange is what a request changes besides the size. "Now" stays a word, for cluster time is not
// known here.
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
		change.Atime, wanted = nanoseconds(in.Atime, in.Atimensec), true
	}
	switch {
	case in.Valid&fuse.FATTR_MTIME_NOW != 0:
		_, resized := in.GetSize() // sets it already
		change.MtimeNow, wanted = true, wanted || !resized
	case in.Valid&fuse.FATTR_MTIME != 0:
		change.Mtime, wanted = nanoseconds(in.Mtime, in.Mtimensec), true
	}
	return change, wanted
}

// nanoseconds since the epoch of a time of the kernel's, whose seconds are signed. A time more than 292
// years from the epoch becomes the nearest that there is.
func nanoseconds(sec uint64, nsec uint32) *int64 {
	s, limit := int64(sec), int64(math.MaxInt64/time.Second)
	switch {
	case s >= limit:
		return new(int64(math.MaxInt64))
	case s <= -limit:
		return new(int64(math.MinInt64))
	}
	return new(s*int64(time.Second) + int64(nsec))
}
