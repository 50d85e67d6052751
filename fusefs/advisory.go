package fusefs

import (
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/kernel"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/storepb"
)

const (
	// releaseWait is how long a lock that must not wait does wait for the end of a file on this mount of which a descriptor
	// was closed: if that was the last one, the kernel tells of it after close(2) has returned.
	releaseWait = 50 * time.Millisecond
	releasePoll = time.Millisecond
	// releaseTries is how many such files may be in the way one after the other.
	releaseTries = 3
	// dropLimit is how long a lock waits for the cluster to be told of a close before it.
	dropLimit = 15 * time.Second
)

// GetLk is F_GETLK. The pid of a process on another host means nothing here and is 0.
func (fs *fileSystem) GetLk(interrupted <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) (code fuse.Status) {
	defer fs.observed("getlk", time.Now(), &code)
	handle, errno := fs.lockable(in)
	if errno != 0 {
		return kernel.Status(errno)
	}
	session := fs.ops.Session()
	if session == 0 {
		return kernel.Status(syscall.ETIMEDOUT) // which locks are the caller's own cannot be told
	}
	result, errno := fs.query(thread.NewRequest(interrupted, in.Pid), &storepb.Query{Query: &storepb.Query_TestLock{
		TestLock: &storepb.TestLock{Session: session, Lock: takeLock(in, handle, false)},
	}})
	if errno == 0 && fs.lost(handle) {
		errno = syscall.EIO
	}
	if errno != 0 {
		return kernel.Status(errno)
	}
	out.Lk = fuse.FileLock{Start: in.Lk.Start, End: in.Lk.End, Typ: syscall.F_UNLCK}
	for _, lock := range result.GetAdvisoryLocks() {
		out.Lk = fuse.FileLock{Start: lock.GetStart(), End: lock.GetEnd(), Typ: syscall.F_RDLCK}
		if lock.GetType() == storepb.LockType_EXCLUSIVE {
			out.Lk.Typ = syscall.F_WRLCK
		}
		if lock.GetSession() == session {
			out.Lk.Pid = lock.GetPid()
		}
	}
	return fuse.OK
}

// SetLk is flock(2) with LOCK_NB, F_SETLK, and every release.
func (fs *fileSystem) SetLk(interrupted <-chan struct{}, in *fuse.LkIn) (code fuse.Status) {
	defer fs.observed("setlk", time.Now(), &code)
	handle, errno := fs.lockable(in)
	if errno != 0 {
		return kernel.Status(errno)
	}
	result, errno := fs.takeLock(context.Background(), interrupted, in, handle, false)
	for tries := 0; tries < releaseTries && fs.awaitRelease(handle.inode, result); tries++ {
		result, errno = fs.takeLock(context.Background(), interrupted, in, handle, false)
	}
	return kernel.Status(errno)
}

// SetLkw is a lock that waits.
func (fs *fileSystem) SetLkw(interrupted <-chan struct{}, in *fuse.LkIn) (code fuse.Status) {
	defer fs.observed("setlkw", time.Now(), &code)
	handle, errno := fs.lockable(in)
	if errno != 0 {
		return kernel.Status(errno)
	}
	ctx, end := thread.UntilInterrupted(interrupted)
	defer end()
	defer fs.bounded(end)()
	_, errno = fs.takeLock(ctx, interrupted, in, handle, true)
	return kernel.Status(errno)
}

func (fs *fileSystem) lockable(in *fuse.LkIn) (*fileHandle, syscall.Errno) {
	handle, found := fs.files.Get(in.Fh)
	if !found {
		return nil, syscall.EBADF
	}
	return handle, 0
}

// takeLock waits until ctx ends, if it is to. It asks again if its owner has meanwhile released what it asked for, because another
// thread closed the file.
func (fs *fileSystem) takeLock(
	ctx context.Context, interrupted <-chan struct{}, in *fuse.LkIn, handle *fileHandle, wait bool,
) (*storepb.Result, syscall.Errno) {
	for {
		result, errno := fs.requestLock(ctx, interrupted, in, handle, wait)
		if result.GetCode() != storepb.Code_NOT_FOUND {
			return result, errno
		}
	}
}

// requestLock answers NOT_FOUND if the lock was released before anybody was told of it.
func (fs *fileSystem) requestLock(
	ctx context.Context, interrupted <-chan struct{}, in *fuse.LkIn, handle *fileHandle, wait bool,
) (*storepb.Result, syscall.Errno) {
	op := takeLock(in, handle, wait)
	if op.GetKind() == storepb.LockKind_RECORD {
		fs.dropPredecessor(in, handle)
		op.ByProcess = wait && waitsForProcess(in.Pid)
	}
	if op.Session = handle.lockSession(0); handle.isLost() {
		return nil, syscall.EIO
	}
	if handle.inode.isDropping(ownerOf(op)) {
		if _, errno := fs.attr(thread.NewRequest(interrupted, in.Pid), op.GetIno()); errno == syscall.ETIMEDOUT {
			return nil, errno // nothing to wait for: the cluster does not answer
		}
	}
	own, drops, errno := handle.inode.beginLock(handle, ownerOf(op))
	if errno != 0 {
		return nil, errno
	}
	caller := kernel.CallerOf(&in.InHeader)
	result, err := fs.ops.TakeLock(ctx, caller, op)
	done := err == nil && result.GetCode() == storepb.Code_OK
	// Another thread may have lost the locks through this descriptor meanwhile, or its session has ended.
	astray := done && op.GetType() != storepb.LockType_UNLOCK && handle.lockSession(op.GetSession()) != op.GetSession()
	lost := false
	switch {
	case astray, err != nil && result.GetCode() != storepb.Code_CANCELLED:
		lost = fs.giveUp(caller, handle.inode, own, op)
	case err != nil:
		fs.releaseLater(caller, handle.inode, own, op)
	}
	stays := handle.inode.endLock(own, drops, op, done && !astray)
	switch {
	case lost, astray, done && handle.isLost():
		return nil, syscall.EIO
	case !stays:
		return &storepb.Result{Code: storepb.Code_NOT_FOUND}, syscall.ESTALE
	case (err != nil || result.GetCode() == storepb.Code_CANCELLED) && ctx.Err() != nil:
		select {
		case <-interrupted:
			return nil, syscall.EINTR
		default:
			return nil, syscall.EAGAIN // see bounded
		}
	}
	answer, errno := kernel.Outcome(result, err, fs.logger)
	return answer, kernel.OfInode(errno)
}

func takeLock(in *fuse.LkIn, handle *fileHandle, wait bool) *storepb.TakeLock {
	op := &storepb.TakeLock{
		Ino: handle.inode.ino, Kind: storepb.LockKind_RECORD, Owner: in.Owner,
		Start: in.Lk.Start, End: in.Lk.End, Pid: in.Lk.Pid, Wait: wait,
	}
	if in.LkFlags&fuse.FUSE_LK_FLOCK != 0 {
		op.Kind, op.Owner = storepb.LockKind_FLOCK, in.Fh
	}
	switch in.Lk.Typ {
	case syscall.F_RDLCK:
		op.Type = storepb.LockType_SHARED
	case syscall.F_WRLCK:
		op.Type = storepb.LockType_EXCLUSIVE
	}
	return op
}

// dropPredecessor drops what a released open file description has locked, if its number is another one's now, who locks, and
// its release has not come yet. A process may have locked through both, so the number does not tell, but the system call does.
func (fs *fileSystem) dropPredecessor(in *fuse.LkIn, handle *fileHandle) {
	before := handle.inode.lockedThrough(in.Owner)
	if before == nil || before == handle {
		return
	}
	if command := thread.FcntlCommand(in.Pid); command == unix.F_OFD_SETLK || command == unix.F_OFD_SETLKW {
		fs.dropRecords(kernel.CallerOf(&in.InHeader), handle.inode, in.Owner, before)
	}
}

// waitsForProcess tells whether a thread waits for a lock that is its process's (F_SETLKW), rather than an
// open file description's (F_OFD_SETLKW), and is all that there is of its process: another thread could
// release what others wait for. In doubt it does not: then no deadlock is found, as for an open file description.
func waitsForProcess(id uint32) bool {
	return thread.FcntlCommand(id) == unix.F_SETLKW && thread.IsAlone(id)
}

// Flush is close(2) of a descriptor: the locks of the process on the file go, whichever descriptor they were
// taken through (fcntl(2)). A write has been committed when it returned.
func (fs *fileSystem) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	handle, found := fs.files.Get(in.Fh)
	if !found {
		return fuse.OK
	}
	handle.noteClose()
	if handle.inode.lockedThrough(in.LockOwner) != nil {
		fs.dropRecords(kernel.CallerOf(&in.InHeader), handle.inode, in.LockOwner, nil)
	}
	return fuse.OK
}

// releaseLocks is for the last close of an open file description: its flock goes, and what it locked as
// itself (F_OFD_SETLK), which no flush has named.
func (fs *fileSystem) releaseLocks(in *fuse.ReleaseIn, handle *fileHandle) {
	caller := kernel.CallerOf(&in.InHeader)
	for _, owner := range handle.inode.recordOwners(handle) {
		fs.dropRecords(caller, handle.inode, owner, handle)
	}
	if in.ReleaseFlags&fuse.FUSE_RELEASE_FLOCK_UNLOCK != 0 {
		fs.drop(caller, handle.inode, lockOwner{storepb.LockKind_FLOCK, in.Fh}, nil)
	}
}

func (fs *fileSystem) dropRecords(caller *storepb.Caller, in *inode, owner uint64, through *fileHandle) {
	fs.drop(caller, in, lockOwner{storepb.LockKind_RECORD, owner}, through)
}

// drop releases what an owner has of a file (see beginDrop for through). If the cluster cannot be told now it is told later;
// until then the owner gets no new lock of that file, which would be released too.
func (fs *fileSystem) drop(caller *storepb.Caller, in *inode, key lockOwner, through *fileHandle) {
	dropped := in.beginDrop(key, through)
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
func (fs *fileSystem) giveUp(caller *storepb.Caller, in *inode, own *owned, op *storepb.TakeLock) (lost bool) {
	lost, dropped := in.giveUp(own, op)
	fs.inodes.use(in.ino)
	fs.insistLater(caller, dropOp(in, ownerOf(op), lost), fs.afterDrop(caller, in, dropped))
	return lost
}

func dropOp(in *inode, key lockOwner, lost bool) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_DropLocks{
		DropLocks: &storepb.DropLocks{Ino: in.ino, Kind: key.kind, Owners: []uint64{key.owner}, Lost: lost},
	}}
}

// releaseLater is for a request that was not sent. Many programs do not look whether a release succeeds, and keep the file open:
// where it was to leave nothing, the cluster is told of that as soon as it can be.
func (fs *fileSystem) releaseLater(caller *storepb.Caller, in *inode, own *owned, op *storepb.TakeLock) {
	if dropped := in.beginRelease(own, op); dropped != nil {
		fs.inodes.use(in.ino)
		fs.insistLater(caller, dropOp(in, ownerOf(op), false), fs.afterDrop(caller, in, dropped))
	}
}

// afterDrop is for when the cluster knows. Should another session begin before, the old one takes the locks along.
func (fs *fileSystem) afterDrop(caller *storepb.Caller, in *inode, dropped func()) func() {
	return func() {
		dropped()
		fs.release(caller, in)
	}
}

// awaitRelease waits if the lock in the way of a request is one of this mount's that a close(2) may have ended. It answers
// whether to ask again.
func (fs *fileSystem) awaitRelease(in *inode, result *storepb.Result) bool {
	locks := result.GetAdvisoryLocks()
	if result.GetCode() != storepb.Code_WOULD_BLOCK || len(locks) == 0 || locks[0].GetSession() != fs.ops.Session() {
		return false
	}
	end := time.Now().Add(releaseWait)
	key := lockOwner{locks[0].GetKind(), locks[0].GetOwner()}
	for holder := fs.holder(in, key); holder != nil; holder = fs.holder(in, key) {
		if !holder.isClosing() || time.Now().After(end) {
			return false
		}
		time.Sleep(releasePoll)
	}
	return in.awaitDrop(key, dropLimit)
}

// holder is the handle through which an owner has locks; nil if it is being released.
func (fs *fileSystem) holder(in *inode, key lockOwner) *fileHandle {
	if key.kind == storepb.LockKind_RECORD {
		return in.lockedThrough(key.owner)
	}
	handle, _ := fs.files.Get(key.owner)
	return handle
}

// bounded ends a wait before the kernel would end the whole mount for it. The function it answers ends that.
func (fs *fileSystem) bounded(end func()) (stop func()) {
	if fs.longestWait == 0 {
		return func() {}
	}
	timer := time.AfterFunc(fs.longestWait, end)
	return func() { timer.Stop() }
}
