package fusefs

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// toKeep returns the inode of a name before its removal (see judgedAs), if it is open here; else 0. It may
// differ from the removed inode.
func (fs *fileSystem) toKeep(judged *ids.Inode) (ino ids.Inode) {
	if judged == nil || !fs.inodes.isUsed(*judged) {
		return 0
	}
	return *judged
}

// mayHaveRemoved handles an operation with a pin and without a result. The pin may exist, so the mount
// removes it after the inode's last use.
func (fs *fileSystem) mayHaveRemoved(caller *storepb.Caller, result *storepb.Result, pinned ids.Inode) {
	if result == nil {
		fs.removed(caller, pinned, pinned)
	}
}

// removed keeps an inode without a name, after an operation of this mount, while programs here have it open.
// It is called before the kernel gets the answer. ino 0: none. The operation itself has kept the inode
// pinned.
func (fs *fileSystem) removed(caller *storepb.Caller, ino, pinned ids.Inode) {
	switch ino {
	case 0:
		return
	case pinned:
		fs.release(caller, fs.inodes.usePinned(ino)) // it may be closed by now
		return
	}
	in, found := fs.inodes.pin(ino)
	if !found {
		return
	}
	defer fs.release(caller, in) // as a separate user, so Unpin cannot overtake Pin
	if _, errno := fs.mutate(nil, caller, pinOp(ino)); errno != 0 {
		fs.logger.Warn("open file that was removed may be lost", "ino", ino, "error", errno)
	}
}

func pinOp(ino ids.Inode) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_Pin{Pin: &storepb.Pin{Ino: uint64(ino)}}}
}

// release ends one use of an inode. After the last one the cluster no longer keeps it for this mount.
func (fs *fileSystem) release(caller *storepb.Caller, in *inode) {
	if !fs.inodes.drop(in) {
		return
	}
	unpin := &storepb.Op{Op: &storepb.Op_Unpin{Unpin: &storepb.Unpin{Ino: uint64(in.ino)}}}
	fs.insist(caller, unpin, func() {
		if fs.inodes.unpinned(in) {
			fs.pin(caller, in)
		}
	})
}

// keepUnnamed pins an inode that lost its last name on another host, until programs here have closed it. It
// does not wait. It has no effect if the inode is not open here or is already kept.
func (fs *fileSystem) keepUnnamed(ino ids.Inode) {
	if in, wanted := fs.inodes.keep(ino); wanted {
		fs.pin(new(storepb.Caller), in)
	}
}

// pin pins an inode in the background, for a separate user already counted.
func (fs *fileSystem) pin(caller *storepb.Caller, in *inode) {
	fs.insistLater(caller, pinOp(in.ino), func() { fs.release(caller, in) })
}

// seen keeps an open file if an answer reports no name.
func (fs *fileSystem) seen(attr *storepb.Attr) {
	if attr.GetIno() != 0 && attr.GetNlink() == 0 {
		fs.keepUnnamed(ids.Inode(attr.GetIno()))
	}
}
