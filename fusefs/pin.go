package fusefs

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// toKeep answers the inode of a name that is about to be taken from it (see judgedAs), if it is open here. Should another one
// have the name by now, that is not kept.
func (fs *fileSystem) toKeep(judged *ids.Inode) (ino ids.Inode) {
	if judged == nil || !fs.inodes.isUsed(*judged) {
		return 0
	}
	return *judged
}

// mayHaveRemoved is for an operation that is to keep an inode. If it has no result it may have done so: then nothing is to be left
// of that when the inode is not in use any more.
func (fs *fileSystem) mayHaveRemoved(caller *storepb.Caller, result *storepb.Result, pinned ids.Inode) {
	if result == nil {
		fs.removed(caller, pinned, pinned)
	}
}

// removed sees to it that an inode which lost its last name by an operation of this mount is kept while
// a program has it open here. It comes before the kernel hears of the removal. ino 0 is none. The operation has kept the inode
// that is pinned already.
func (fs *fileSystem) removed(caller *storepb.Caller, ino, pinned ids.Inode) {
	switch ino {
	case 0:
		return
	case pinned:
		fs.release(caller, fs.inodes.usePinned(ino)) // it may have been closed meanwhile
		return
	}
	in, found := fs.inodes.pin(ino)
	if !found {
		return
	}
	defer fs.release(caller, in) // as a user of its own, so that Unpin cannot overtake Pin
	if _, errno := fs.mutate(nil, caller, pinOp(ino)); errno != 0 {
		fs.logger.Warn("open file that was removed may be lost", "ino", ino, "error", errno)
	}
}

func pinOp(ino ids.Inode) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_Pin{Pin: &storepb.Pin{Ino: uint64(ino)}}}
}

// release ends one use of an inode, and with the last one the cluster keeps it no longer for this mount.
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

// keepUnnamed has the cluster keep an inode that lost its last name on another host, until programs here have closed it. It does
// not wait. Nothing happens for an inode that is not open here or is kept already.
func (fs *fileSystem) keepUnnamed(ino ids.Inode) {
	if in, wanted := fs.inodes.keep(ino); wanted {
		fs.pin(new(storepb.Caller), in)
	}
}

// pin has the cluster keep an inode in the background, for a user of its own that was counted.
func (fs *fileSystem) pin(caller *storepb.Caller, in *inode) {
	fs.insistLater(caller, pinOp(in.ino), func() { fs.release(caller, in) })
}

// seen keeps a file that is open here once an answer says that it has no name any more.
func (fs *fileSystem) seen(attr *storepb.Attr) {
	if attr.GetIno() != 0 && attr.GetNlink() == 0 {
		fs.keepUnnamed(ids.Inode(attr.GetIno()))
	}
}
