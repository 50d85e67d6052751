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
// somebody has it open here. It comes before the kernel hears of the removal. ino 0 is none; what is pinned the operation
// has kept already.
func (fs *fileSystem) removed(caller *storepb.Caller, ino, pinned ids.Inode) {
	if ino == 0 {
		return
	}
	in, found := fs.inodes.pin(ino)
	switch {
	case found:
		defer fs.release(caller, in) // as a user of its own, so that Unpin cannot overtake Pin
	case ino == pinned:
		fs.unpin(caller, ino) // closed meanwhile
	}
	if !found || ino == pinned {
		return
	}
	pin := &storepb.Op{Op: &storepb.Op_Pin{Pin: &storepb.Pin{Ino: uint64(ino)}}}
	if _, errno := fs.mutate(nil, caller, pin); errno != 0 {
		fs.logger.Warn("open file that was removed may be lost", "ino", ino, "error", errno)
	}
}

// release ends one use of an inode, and with the last one whatever the namespace kept for this mount.
func (fs *fileSystem) release(caller *storepb.Caller, in *inode) {
	if fs.inodes.drop(in) {
		fs.unpin(caller, in.ino)
	}
}

func (fs *fileSystem) unpin(caller *storepb.Caller, ino ids.Inode) {
	fs.insist(caller, &storepb.Op{Op: &storepb.Op_Unpin{Unpin: &storepb.Unpin{Ino: uint64(ino)}}}, func() {})
}

// keepUnnamed has the cluster keep an inode that lost its last name on another host, until programs here have closed it. It does
// not wait. Nothing happens for an inode that is not open here or is kept already.
func (fs *fileSystem) keepUnnamed(ino ids.Inode) {
	in, wanted := fs.inodes.keep(ino)
	if !wanted {
		return
	}
	caller := new(storepb.Caller)
	pin := &storepb.Op{Op: &storepb.Op_Pin{Pin: &storepb.Pin{Ino: uint64(ino)}}}
	fs.insistLater(caller, pin, func() { fs.release(caller, in) })
}

// seen keeps a file that is open here once an answer says that it has no name any more.
func (fs *fileSystem) seen(attr *storepb.Attr) {
	if attr.GetIno() != 0 && attr.GetNlink() == 0 {
		fs.keepUnnamed(ids.Inode(attr.GetIno()))
	}
}
