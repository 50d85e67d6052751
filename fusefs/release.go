package fusefs

import (
	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/filelock"
	"lockfs/fusefs/kernel"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Flush is close(2) of a descriptor: the locks of the process on the file go, whichever descriptor they were
// taken through (fcntl(2)). A write has been committed when it returned.
func (fs *fileSystem) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	handle, found := fs.files.Get(in.Fh)
	if !found {
		return fuse.OK
	}
	handle.locks.NoteClose()
	if handle.inode.locks.LockedThrough(ids.Owner(in.LockOwner)) != nil {
		fs.dropRecords(kernel.CallerOf(&in.InHeader), handle.inode, ids.Owner(in.LockOwner), nil)
	}
	return fuse.OK
}

// releaseLocks is for the last close of an open file description: its flock goes, and what it locked as
// itself (F_OFD_SETLK), which no flush has named.
func (fs *fileSystem) releaseLocks(in *fuse.ReleaseIn, handle *fileHandle) {
	caller := kernel.CallerOf(&in.InHeader)
	for _, owner := range handle.inode.locks.RecordOwners(&handle.locks) {
		fs.dropRecords(caller, handle.inode, owner, &handle.locks)
	}
	if in.ReleaseFlags&fuse.FUSE_RELEASE_FLOCK_UNLOCK != 0 {
		fs.drop(caller, handle.inode, filelock.Owner{Kind: storepb.LockKind_FLOCK, Number: ids.Owner(in.Fh)}, nil)
	}
}

func (fs *fileSystem) dropRecords(caller *storepb.Caller, in *inode, owner ids.Owner, through *filelock.Description) {
	fs.drop(caller, in, filelock.Owner{Kind: storepb.LockKind_RECORD, Number: owner}, through)
}

// drop releases what an owner has of a file (see [filelock.File.BeginDrop] for through). If the cluster cannot be told now it is told later;
// until then the owner gets no new lock of that file, which would be released too.
func (fs *fileSystem) drop(caller *storepb.Caller, in *inode, key filelock.Owner, through *filelock.Description) {
	dropped := in.locks.BeginDrop(key, through)
	if dropped == nil {
		return
	}
	fs.inodes.use(in.ino) // so that it is still this inode that knows of it when the file is opened again
	fs.insist(caller, dropOp(in, key, false), fs.afterDrop(caller, in, dropped))
}

// giveUp is for a request for a lock of which nobody can tell what became. It may have been done, so what its owner has is
// released, which the cluster is told of as soon as it can be. If others who use the descriptors may rely on more than that
// request, what they do through these fails from now on, and nobody else gets the locks before the lock delay is over: as for
// a session that is lost.
func (fs *fileSystem) giveUp(caller *storepb.Caller, in *inode, asked filelock.Request, op *storepb.TakeLock) (lost bool) {
	lost, dropped := in.locks.GiveUp(asked, op)
	fs.inodes.use(in.ino)
	fs.insistLater(caller, dropOp(in, filelock.OwnerOf(op), lost), fs.afterDrop(caller, in, dropped))
	return lost
}

func dropOp(in *inode, key filelock.Owner, lost bool) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_DropLocks{
		DropLocks: &storepb.DropLocks{Ino: uint64(in.ino), Kind: key.Kind, Owners: []uint64{uint64(key.Number)}, Lost: lost},
	}}
}

// releaseLater is for a request that was not sent. Many programs do not look whether a release succeeds, and keep the file open:
// where it was to leave nothing, the cluster is told of that as soon as it can be.
func (fs *fileSystem) releaseLater(caller *storepb.Caller, in *inode, asked filelock.Request, op *storepb.TakeLock) {
	if dropped := in.locks.BeginRelease(asked, op); dropped != nil {
		fs.inodes.use(in.ino)
		fs.insistLater(caller, dropOp(in, filelock.OwnerOf(op), false), fs.afterDrop(caller, in, dropped))
	}
}

// afterDrop is for when the cluster knows. Should another session begin before, the old one takes the locks along.
func (fs *fileSystem) afterDrop(caller *storepb.Caller, in *inode, dropped func()) func() {
	return func() {
		dropped()
		fs.release(caller, in)
	}
}
