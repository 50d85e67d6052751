package fusefs

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/filelock"
	"lockfs/fusefs/kernel"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

const (
	// releasePoll is how often a release is looked for that may be in progress (filelock.ReleaseWait).
	releasePoll = time.Millisecond
	// releaseTries is how many files of this mount that are being released may be in the way one after the other.
	releaseTries = 3
)

// GetLk is F_GETLK. The pid of a process on another host means nothing here and is 0.
func (fs *fileSystem) GetLk(interrupted <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) (code fuse.Status) {
	defer fs.observed("getlk", time.Now(), &code)
	handle, errno := fs.lockable(in)
	if errno != 0 {
		return kernel.Status(errno)
	}
	var session ids.Session
	var result *storepb.Result
	for isNew := true; isNew; isNew = errno == 0 && session != fs.ops.Session() { // then what is the caller's own is in another one
		if session = fs.ops.Session(); session == 0 {
			return kernel.Status(syscall.ETIMEDOUT) // which locks are the caller's own cannot be told
		}
		result, errno = fs.query(thread.NewRequest(interrupted, in.Pid), &storepb.Query{Query: &storepb.Query_TestLock{
			TestLock: &storepb.TestLock{Session: uint64(session), Lock: takeLock(in, handle, false)},
		}})
	}
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
		if ids.Session(lock.GetSession()) == session {
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
	var elsewhere releasesElsewhere
	for tries := 0; tries < releaseTries; {
		inTheWay := otherLock(result)
		if inTheWay == nil {
			break
		}
		if ids.Session(inTheWay.GetSession()) == fs.ops.Session() {
			if tries++; !fs.awaitRelease(handle.inode, lockOwnerOf(inTheWay), dropLimit) {
				break
			}
		} else if !elsewhere.await(fs.ops, takeLock(in, handle, false), inTheWay) {
			break
		}
		result, errno = fs.takeLock(context.Background(), interrupted, in, handle, false)
	}
	return kernel.Status(errno)
}

// releasesElsewhere are the releases on other mounts for which one request waits: several holders of a shared lock may have closed their
// files. The request asks about each owner once, and waits for filelock.ReleaseWait in all.
type releasesElsewhere struct {
	until time.Time // zero before the first of them
	asked map[ownerElsewhere]bool
}

type ownerElsewhere struct {
	session uint64
	filelock.Owner
}

// await reports whether an owner on another mount has released the lock in the way of a request.
func (r *releasesElsewhere) await(ops Operator, wanted *storepb.TakeLock, inTheWay *storepb.AdvisoryLock) bool {
	if r.until.IsZero() {
		r.until, r.asked = time.Now().Add(filelock.ReleaseWait), make(map[ownerElsewhere]bool)
	}
	owner := ownerElsewhere{inTheWay.GetSession(), lockOwnerOf(inTheWay)}
	if r.asked[owner] {
		return false
	}
	r.asked[owner] = true
	ctx, end := context.WithDeadline(context.Background(), r.until)
	defer end()
	return ctx.Err() == nil && ops.AwaitRelease(ctx, wanted, inTheWay)
}

// SetLkw is a lock that waits.
func (fs *fileSystem) SetLkw(interrupted <-chan struct{}, in *fuse.LkIn) (code fuse.Status) {
	defer fs.observed("setlkw", time.Now(), &code)
	handle, errno := fs.lockable(in)
	if errno != 0 {
		return kernel.Status(errno)
	}
	ctx, end := fs.waits.context(fs.longestWait)
	defer end()
	_, errno = fs.takeLock(ctx, interrupted, in, handle, true)
	return kernel.Status(errno)
}

func (fs *fileSystem) lockable(in *fuse.LkIn) (*fileHandle, syscall.Errno) {
	handle, found := fs.file(in.Fh, in.NodeId)
	if !found {
		return nil, syscall.EBADF
	}
	return handle, 0
}

// takeLock waits until ctx ends or interrupted is closed, if it is to. It asks again if its owner has meanwhile released what it asked for,
// because another thread closed the file.
func (fs *fileSystem) takeLock(
	ctx context.Context, interrupted <-chan struct{}, in *fuse.LkIn, handle *fileHandle, wait bool,
) (*storepb.Result, syscall.Errno) {
	w := fs.waits.take(in.Unique, handle.inode)
	for {
		result, errno := fs.requestLock(ctx, interrupted, in, handle, wait, w)
		if result.GetCode() != storepb.Code_NOT_FOUND {
			return result, errno
		}
		w = nil
	}
}

// requestLock answers NOT_FOUND if the lock was released before any program was told of it. w is nil unless the cluster has the request already.
func (fs *fileSystem) requestLock(
	ctx context.Context, interrupted <-chan struct{}, in *fuse.LkIn, handle *fileHandle, wait bool, w *lockWait,
) (*storepb.Result, syscall.Errno) {
	op := takeLock(in, handle, wait)
	if w != nil {
		op.Session = w.request.GetSession()
	} else {
		var errno syscall.Errno
		if w, errno = fs.beginLock(interrupted, in, handle, op); errno != 0 {
			return nil, errno
		}
	}
	caller := kernel.CallerOf(&in.InHeader)
	result, err := fs.obtainLock(ctx, interrupted, caller, op, w)
	if errors.Is(err, errSuspended) {
		fs.waits.put(in.Unique, handle.inode, w)
		return nil, syscall.EINTR
	}
	done := err == nil && result.GetCode() == storepb.Code_OK
	// Another thread may have lost the locks through this descriptor meanwhile, or its session has ended.
	session := ids.Session(op.GetSession())
	astray := done && op.GetType() != storepb.LockType_UNLOCK && handle.locks.Session(session) != session
	lost := false
	switch {
	case astray, err != nil && result.GetCode() != storepb.Code_CANCELLED:
		lost = fs.giveUp(caller, handle.inode, w.asked, op)
	case err != nil:
		fs.releaseLater(caller, handle.inode, w.asked, op)
	}
	stays := handle.inode.locks.End(w.asked, op, done && !astray)
	switch {
	case lost, astray, done && handle.locks.IsLost():
		return nil, syscall.EIO
	case !stays:
		return &storepb.Result{Code: storepb.Code_NOT_FOUND}, syscall.ESTALE
	case wait && (err != nil || result.GetCode() == storepb.Code_CANCELLED):
		if isClosed(interrupted) {
			return nil, syscall.EINTR
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // before the kernel would end the whole mount for a long wait
			return nil, syscall.EAGAIN
		}
	}
	answer, errno := kernel.Outcome(result, err, fs.logger)
	return answer, kernel.OfInode(errno)
}

// beginLock completes op for the cluster, and notes that its owner asks for a lock.
func (fs *fileSystem) beginLock(
	interrupted <-chan struct{}, in *fuse.LkIn, handle *fileHandle, op *storepb.TakeLock,
) (*lockWait, syscall.Errno) {
	w := &lockWait{handle: in.Fh}
	if op.GetKind() == storepb.LockKind_RECORD {
		fs.dropPredecessor(in, handle)
		op.ByProcess = op.GetWait() && waitsForProcess(in.Pid)
	}
	if op.Session = uint64(handle.locks.Session(0)); handle.locks.IsLost() {
		return nil, syscall.EIO
	}
	if handle.inode.locks.IsDropping(filelock.OwnerOf(op)) {
		if _, errno := fs.attr(thread.NewRequest(interrupted, in.Pid), handle.inode.ino); errno == syscall.ETIMEDOUT {
			return nil, errno // nothing to wait for: the cluster does not answer
		}
	}
	var errno syscall.Errno
	w.asked, errno = handle.inode.locks.Begin(&handle.locks, filelock.OwnerOf(op))
	return w, errno
}

// obtainLock asks the cluster, unless it has the request already, and waits. The error is errSuspended if the mount is handed over meanwhile.
func (fs *fileSystem) obtainLock(
	ctx context.Context, interrupted <-chan struct{}, caller *storepb.Caller, op *storepb.TakeLock, w *lockWait,
) (result *storepb.Result, err error) {
	if w.request == nil {
		if result, w.request, err = fs.ops.RequestLock(caller, op); w.request == nil {
			return result, err
		}
	}
	result, err = fs.ops.AwaitLock(ctx, interrupted, w.request)
	if err != nil || result.GetCode() != storepb.Code_WAITING {
		return result, err
	}
	if !isClosed(interrupted) && errors.Is(context.Cause(ctx), errSuspended) {
		return nil, errSuspended
	}
	return fs.ops.InterruptLock(caller, w.request)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func takeLock(in *fuse.LkIn, handle *fileHandle, wait bool) *storepb.TakeLock {
	op := &storepb.TakeLock{
		Ino: uint64(handle.inode.ino), Kind: storepb.LockKind_RECORD, Owner: in.Owner,
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
	before := handle.inode.locks.LockedThrough(ids.Owner(in.Owner))
	if before == nil || before == &handle.locks {
		return
	}
	if command := thread.SurelyFcntlCommand(in.Pid); command == unix.F_OFD_SETLK || command == unix.F_OFD_SETLKW {
		fs.dropRecords(kernel.CallerOf(&in.InHeader), handle.inode, ids.Owner(in.Owner), before)
	}
}

// waitsForProcess tells whether a thread waits for a lock that is its process's (F_SETLKW), rather than an
// open file description's (F_OFD_SETLKW), and is all that there is of its process: another thread could
// release what others wait for. In doubt it does not: then no deadlock is found, as for an open file description.
func waitsForProcess(id uint32) bool {
	return thread.FcntlCommand(id) == unix.F_SETLKW && thread.IsAlone(id)
}

// otherLock is the lock for which a request was refused that is not to wait; nil: it was not, or for another reason.
func otherLock(result *storepb.Result) *storepb.AdvisoryLock {
	if locks := result.GetAdvisoryLocks(); result.GetCode() == storepb.Code_WOULD_BLOCK && len(locks) > 0 && locks[0].GetUntil() == 0 {
		return locks[0]
	}
	return nil
}

func lockOwnerOf(lock *storepb.AdvisoryLock) filelock.Owner {
	return filelock.Owner{Kind: lock.GetKind(), Number: ids.Owner(lock.GetOwner())}
}

// dropLimit is how long a request of this mount waits for the cluster to be told of a release.
const dropLimit = 15 * time.Second

// awaitRelease waits up to a limit if a close(2) may just have released what an owner on this mount has locked of a file, and reports
// whether the cluster knows of the release.
func (fs *fileSystem) awaitRelease(in *inode, key filelock.Owner, limit time.Duration) bool {
	began := time.Now()
	for holder := fs.holder(in, key); holder != nil && !in.locks.IsDropping(key); holder = fs.holder(in, key) {
		if !holder.IsClosing() {
			return false
		}
		time.Sleep(releasePoll)
	}
	return in.locks.AwaitDropFor(key, limit-time.Since(began))
}

// released is awaitRelease for requests on other hosts, which wait once for each close. An inode that is not in use here has no locks of
// this mount any more.
func (fs *fileSystem) released(ino ids.Inode, kind storepb.LockKind, number ids.Owner) bool {
	in, found := fs.inodes.get(ino)
	if !found {
		return true
	}
	key := filelock.Owner{Kind: kind, Number: number}
	mayAwait := func() bool { return in.locks.MayAwaitDrop(key) }
	if holder := fs.holder(in, key); holder != nil && !in.locks.IsDropping(key) {
		mayAwait = holder.MayAwaitRelease
	}
	return mayAwait() && fs.awaitRelease(in, key, filelock.ReleaseWait)
}

// holder is the open file description through which an owner has locks; nil if it is being released.
func (fs *fileSystem) holder(in *inode, key filelock.Owner) *filelock.Description {
	if key.Kind == storepb.LockKind_RECORD {
		return in.locks.LockedThrough(key.Number)
	}
	if handle, found := fs.files.Get(uint64(key.Number)); found {
		return &handle.locks
	}
	return nil
}

// lost tells whether a lock was taken through the handle that whoever has it may believe to hold while another host has it
// now: its session has ended, or it was given up.
func (fs *fileSystem) lost(h *fileHandle) bool {
	session := h.locks.Session(0)
	return h.locks.IsLost() || session != 0 && session != fs.ops.Session()
}
