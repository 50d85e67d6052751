package fusefs

import (
	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/filelock"
	"lockfs/fusefs/fuseattr"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Flush is close(2) of a descriptor. It drops the process's fcntl locks of the file, taken through any
// descriptor (fcntl(2)). Writes are committed before they return.
func (fs *fileSystem) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	handle, found := fs.files.Get(in.Fh)
	if !found {
		return fuse.OK
	}
	handle.locks.NoteClose()
	if handle.inode.locks.LockedThrough(ids.Owner(in.LockOwner)) != nil {
		fs.dropRecords(fuseattr.CallerOf(&in.InHeader), handle.inode, ids.Owner(in.LockOwner), nil)
	}
	return fuse.OK
}

// releaseLocks handles the last close of an open file description. It drops its flock and its own locks
// (F_OFD_SETLK), which no flush has named.
func (fs *fileSystem) releaseLocks(in *fuse.ReleaseIn, handle *fileHandle) {
	caller := fuseattr.CallerOf(&in.InHeader)
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

// drop releases an owner's locks of a file (see [filelock.File.BeginDrop] for through). After a failure it
// tries again in the background. Until then the owner gets no new lock of the file, as the release would
// include it.
func (fs *fileSystem) drop(caller *storepb.Caller, in *inode, key filelock.Owner, through *filelock.Description) {
	dropped := in.locks.BeginDrop(key, through)
	if dropped == nil {
		return
	}
	fs.inodes.use(in.ino) // so that this inode knows of it if the file is opened again
	fs.insist(caller, dropOp(in, key, false), fs.afterDrop(caller, in, dropped))
}

// giveUp handles a lock request with an unknown outcome. The request may have been done, so giveUp releases
// the owner's locks, in the background. Other users of the descriptors may rely on more locks than this
// request's. Then calls through these descriptors fail from now on, as after the loss of a session. No other
// owner gets the locks before the end of the lock delay. lost reports this case.
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

// giveBack handles a lock that was granted after a wait to a killed thread. No program knows of it, and
// another process may keep the file open. giveBack releases the lock in the background. It returns false if
// the owner keeps it, because it may have more locks.
func (fs *fileSystem) giveBack(caller *storepb.Caller, in *inode, asked filelock.Request, op *storepb.TakeLock) bool {
	dropped := in.locks.GiveBack(asked, op)
	if dropped == nil {
		return false
	}
	fs.inodes.use(in.ino)
	fs.insistLater(caller, dropOp(in, filelock.OwnerOf(op), false), fs.afterDrop(caller, in, dropped))
	return true
}

// releaseLater handles a request that the mount has not sent. Many programs ignore a failed release and keep
// the file open. If the request was to leave no lock, releaseLater releases all in the background.
func (fs *fileSystem) releaseLater(caller *storepb.Caller, in *inode, asked filelock.Request, op *storepb.TakeLock) {
	if dropped := in.locks.BeginRelease(asked, op); dropped != nil {
		fs.inodes.use(in.ino)
		fs.insistLater(caller, dropOp(in, filelock.OwnerOf(op), false), fs.afterDrop(caller, in, dropped))
	}
}

// afterDrop returns the function to call once the cluster has recorded a drop. If a new session begins
// before, the end of the old one releases the locks.
func (fs *fileSystem) afterDrop(caller *storepb.Caller, in *inode, dropped func()) func() {
	return func() {
		dropped()
		fs.release(caller, in)
	}
}
