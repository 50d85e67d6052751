package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// refuseRoot returns EACCES if the caller is root under root squash and uid 65534 lacks the permissions. The
// kernel permits root everything. The cluster refuses changes; this function refuses reads and opens.
// access(2) and chdir(2) still succeed: the kernel does not ask the mount.
func (fs *fileSystem) refuseRoot(interrupted <-chan struct{}, header *fuse.InHeader, ino ids.Inode, need uint32) syscall.Errno {
	isNobody, errno := fs.isNobody(interrupted, header)
	if !isNobody || errno != 0 {
		return errno
	}
	attr, errno := fs.attr(thread.NewRequest(interrupted, header.Pid), ino)
	if errno == 0 && !nobodyMay(attr, need) {
		errno = syscall.EACCES
	}
	return errno
}

// isNobody reports whether the caller is root under root squash. It waits until this is known.
func (fs *fileSystem) isNobody(interrupted <-chan struct{}, header *fuse.InHeader) (bool, syscall.Errno) {
	if header.Uid != 0 || fs.rootIsNobody == nil {
		return false, 0
	}
	ctx, end := thread.NewRequest(interrupted, header.Pid).WhileWaitedFor(0)
	defer end()
	isNobody, err := fs.rootIsNobody(ctx)
	if err != nil && ctx.Err() != nil {
		return false, syscall.EINTR
	}
	_, errno := fuseattr.Outcome(nil, err, fs.logger)
	return isNobody, errno
}

func nobodyMay(attr *storepb.Attr, need uint32) bool {
	return namespace.Permits(&storepb.Viewer{Uid: namespace.Nobody, Gid: namespace.Nobody}, attr, need)
}

// mayOpenNew reports whether the caller of a creation certainly has the permissions for a file made
// meanwhile.
func (fs *fileSystem) mayOpenNew(interrupted <-chan struct{}, in *fuse.CreateIn, attr *storepb.Attr) bool {
	return fuseattr.MayOpen(attr, &in.InHeader, in.Flags) &&
		fs.refuseRoot(interrupted, &in.InHeader, ids.Inode(attr.GetIno()), fuseattr.NeededToOpen(in.Flags)) == 0
}
