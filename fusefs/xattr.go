package fusefs

import (
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func isLockXattr(name string) bool { return strings.HasPrefix(name, namespace.LockXattrs) }

// GetXAttr returns the size needed, with ERANGE, if dest is too small. go-fuse converts this to success for a
// request of the size.
func (fs *fileSystem) GetXAttr(
	interrupted <-chan struct{}, header *fuse.InHeader, name string, dest []byte,
) (size uint32, code fuse.Status) {
	defer fs.observed("getxattr", time.Now(), &code)
	if errno := fuseattr.CheckXattr(name); errno != 0 {
		return 0, fuseattr.Status(errno)
	}
	if errno := fs.refuseRoot(interrupted, header, ids.Inode(header.NodeId), namespace.MayRead); errno != 0 {
		return 0, fuseattr.Status(errno)
	}
	var attributes []*storepb.Xattr
	var errno syscall.Errno
	if isLockXattr(name) {
		attributes, errno = fs.lockXattrs(interrupted, header, len(dest) > 0)
	} else {
		attributes, errno = fs.userXattrs(interrupted, header)
	}
	if errno != 0 {
		return 0, fuseattr.Status(errno)
	}
	for _, attribute := range attributes {
		if string(attribute.GetName()) == name {
			return fit(dest, attribute.GetValue())
		}
	}
	return 0, fuse.ENODATA
}

// ListXAttr returns the names of the user's own attributes, each with a final NUL. It omits those of locks:
// programs such as cp and rsync copy, set and remove all listed attributes.
func (fs *fileSystem) ListXAttr(
	interrupted <-chan struct{}, header *fuse.InHeader, dest []byte,
) (size uint32, code fuse.Status) {
	defer fs.observed("listxattr", time.Now(), &code)
	own, errno := fs.userXattrs(interrupted, header)
	if errno != 0 {
		return 0, fuseattr.Status(errno)
	}
	var names []byte
	for _, attribute := range own {
		names = append(append(names, attribute.GetName()...), 0)
	}
	return fit(dest, names)
}

func (fs *fileSystem) userXattrs(interrupted <-chan struct{}, header *fuse.InHeader) ([]*storepb.Xattr, syscall.Errno) {
	result, errno := fs.query(thread.NewRequest(interrupted, header.Pid), &storepb.Query{Query: &storepb.Query_GetXattrs{
		GetXattrs: &storepb.GetXattrs{Ino: header.NodeId},
	}})
	return result.GetXattrs(), fuseattr.OfInode(errno)
}

func fit(dest, value []byte) (size uint32, code fuse.Status) {
	size = uint32(len(value))
	if len(dest) < len(value) {
		return size, fuse.ERANGE
	}
	copy(dest, value)
	return size, fuse.OK
}

// SetXAttr supports XATTR_CREATE and XATTR_REPLACE. It succeeds without effect for attributes of locks:
// copies elsewhere may carry them, and copying back should not fail.
func (fs *fileSystem) SetXAttr(
	interrupted <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte,
) (code fuse.Status) {
	defer fs.observed("setxattr", time.Now(), &code)
	if isLockXattr(name) {
		return fuse.OK
	}
	if errno := fuseattr.CheckXattr(name); errno != 0 {
		return fuseattr.Status(errno)
	}
	_, errno := fs.mutate(interrupted, fuseattr.CallerOf(&in.InHeader), &storepb.Op{Op: &storepb.Op_SetXattr{
		SetXattr: &storepb.SetXattr{
			Ino: in.NodeId, Name: []byte(name), Value: append([]byte(nil), value...),
			MustCreate:  in.Flags&unix.XATTR_CREATE != 0,
			MustReplace: in.Flags&unix.XATTR_REPLACE != 0,
		},
	}})
	return fuseattr.Status(fuseattr.OfInode(errno))
}

// RemoveXAttr removes one extended attribute. It succeeds without effect for attributes of locks, as
// [fileSystem.SetXAttr] does.
func (fs *fileSystem) RemoveXAttr(
	interrupted <-chan struct{}, header *fuse.InHeader, name string,
) (code fuse.Status) {
	defer fs.observed("removexattr", time.Now(), &code)
	if isLockXattr(name) {
		return fuse.OK
	}
	if errno := fuseattr.CheckXattr(name); errno != 0 {
		return fuseattr.Status(errno)
	}
	_, errno := fs.mutate(interrupted, fuseattr.CallerOf(header), &storepb.Op{Op: &storepb.Op_RemoveXattr{
		RemoveXattr: &storepb.RemoveXattr{Ino: header.NodeId, Name: []byte(name)},
	}})
	return fuseattr.Status(fuseattr.OfInode(errno))
}
