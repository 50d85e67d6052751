package fusefs

import (
	"cmp"
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/filelock"
	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

const (
	// releasePoll is the pause between checks for a release in progress (filelock.ReleaseWait).
	releasePoll = time.Millisecond
	// releaseTries limits the releases on this mount for which one request waits, one after the other.
	releaseTries = 3
)

// GetLk is F_GETLK. It returns pid 0 for a process on another host.
func (fs *fileSystem) GetLk(interrupted <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) (code fuse.Status) {
	defer fs.observed("getlk", time.Now(), &code)
	handle, errno := fs.lockable(in)
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	var session ids.Session
	var result *storepb.Result
	for isNew := true; isNew; isNew = errno == 0 && session != fs.ops.Session() { // a new session
		if session = fs.ops.Session(); session == 0 {
			return fuseattr.Status(syscall.ETIMEDOUT) // the caller's own locks are unknown
		}
		result, errno = fs.query(thread.NewRequest(interrupted, in.Pid), &storepb.Query{Query: &storepb.Query_TestLock{
			TestLock: &storepb.TestLock{Session: uint64(session), Lock: takeLock(in, handle, false)},
		}})
	}
	if errno == 0 && fs.lost(handle) {
		errno = syscall.EIO
	}
	if errno != 0 {
		return fuseattr.Status(errno)
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
		return fuseattr.Status(errno)
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
	return fuseattr.Status(errno)
}

// releasesElsewhere are the releases on other mounts for which one request waits: several holders of a shared
// lock may have closed their files. The request asks about each owner once, and waits for
// filelock.ReleaseWait in all.
type releasesElsewhere struct {
	until time.Time // zero before the first one
	asked map[ownerElsewhere]bool
}

type ownerElsewhere struct {
	session uint64
	filelock.Owner
}

// await reports whether an owner on another mount has released the conflicting lock.
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

// SetLkw is a lock request that waits.
func (fs *fileSystem) SetLkw(interrupted <-chan struct{}, in *fuse.LkIn) (code fuse.Status) {
	defer fs.observed("setlkw", time.Now(), &code)
	handle, errno := fs.lockable(in)
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	ctx, end := fs.waits.context(fs.longestWait)
	defer end()
	_, errno = fs.takeLock(ctx, interrupted, in, handle, true)
	return fuseattr.Status(errno)
}

func (fs *fileSystem) lockable(in *fuse.LkIn) (*fileHandle, syscall.Errno) {
	handle, found := fs.file(in.Fh, in.NodeId)
	if !found {
		return nil, syscall.EBADF
	}
	return handle, 0
}

// takeLock takes or releases a lock. With wait it waits until ctx ends or interrupted is closed. It asks
// again if the owner has released the lock meanwhile, by a close in another thread.
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

// requestLock returns NOT_FOUND if the lock was released before any program had it. w is nil unless the
// cluster already has the request.
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
	caller := fuseattr.CallerOf(&in.InHeader)
	result, err := fs.obtainLock(ctx, interrupted, caller, op, w)
	if errors.Is(err, errSuspended) && w.request != nil {
		fs.waits.put(in.Unique, handle.inode, w)
		return nil, syscall.EINTR
	}
	done := err == nil && result.GetCode() == storepb.Code_OK
	// Another thread may have lost this descriptor's locks, or its session may have ended.
	session := ids.Session(op.GetSession())
	astray := done && op.GetType() != storepb.LockType_UNLOCK && handle.locks.Session(session) != session
	lost, isGivenBack := false, false
	switch {
	case astray, err != nil && result.GetCode() != storepb.Code_CANCELLED:
		lost = fs.giveUp(caller, handle.inode, w.asked, op)
	case err != nil:
		fs.releaseLater(caller, handle.inode, w.asked, op)
	case done && w.request != nil && thread.IsKilled(in.Pid):
		isGivenBack = fs.giveBack(caller, handle.inode, w.asked, op)
	}
	stays := handle.inode.locks.End(w.asked, op, done && !astray && !isGivenBack)
	switch {
	case isGivenBack:
		return nil, syscall.EINTR
	case lost, astray, done && handle.locks.IsLost():
		return nil, syscall.EIO
	case !stays:
		return &storepb.Result{Code: storepb.Code_NOT_FOUND}, syscall.ESTALE
	case wait && (err != nil || result.GetCode() == storepb.Code_CANCELLED):
		if isClosed(interrupted) || errors.Is(err, errSuspended) {
			return nil, syscall.EINTR
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // before the kernel ends the mount
			return nil, syscall.EAGAIN
		}
	}
	answer, errno := fuseattr.Outcome(result, err, fs.logger)
	return answer, fuseattr.OfInode(errno)
}

// beginLock completes op for the cluster, and records that its owner asks for a lock.
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
			return nil, errno // no wait: the cluster does not answer
		}
	}
	var errno syscall.Errno
	w.asked, errno = handle.inode.locks.Begin(&handle.locks, filelock.OwnerOf(op))
	return w, errno
}

// obtainLock sends the request, unless the cluster already has it, and waits. It returns errSuspended if the
// mount is handed over meanwhile.
func (fs *fileSystem) obtainLock(
	ctx context.Context, interrupted <-chan struct{}, caller *storepb.Caller, op *storepb.TakeLock, w *lockWait,
) (result *storepb.Result, err error) {
	if w.request == nil {
		if result, err = fs.sendLock(ctx, interrupted, caller, op, w); w.request == nil {
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
	defer fs.waitCommands.begin(context.Background(), nil, caller.GetUid())()
	return fs.ops.InterruptLock(caller, w.request)
}

// errInterrupted means: the caller was interrupted before the cluster had its request.
var errInterrupted = errors.New("interrupted before the request")

// sendLock sends the request. If the cluster does not get it, the code is CANCELLED, with an error.
func (fs *fileSystem) sendLock(
	ctx context.Context, interrupted <-chan struct{}, caller *storepb.Caller, op *storepb.TakeLock, w *lockWait,
) (result *storepb.Result, err error) {
	if op.GetWait() {
		end := fs.waitCommands.begin(ctx, interrupted, caller.GetUid())
		if end == nil {
			return &storepb.Result{Code: storepb.Code_CANCELLED}, cmp.Or(context.Cause(ctx), errInterrupted)
		}
		defer end()
	}
	result, w.request, err = fs.ops.RequestLock(caller, op)
	return result, err
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

// dropPredecessor drops the locks of a released open file description whose number the caller now has, before
// its RELEASE. A process may lock through both, so only the system call tells.
func (fs *fileSystem) dropPredecessor(in *fuse.LkIn, handle *fileHandle) {
	before := handle.inode.locks.LockedThrough(ids.Owner(in.Owner))
	if before == nil || before == &handle.locks {
		return
	}
	if command := thread.SurelyFcntlCommand(in.Pid); command == unix.F_OFD_SETLK || command == unix.F_OFD_SETLKW {
		fs.dropRecords(fuseattr.CallerOf(&in.InHeader), handle.inode, ids.Owner(in.Owner), before)
	}
}

// waitsForProcess reports whether a thread waits for a lock of its process (F_SETLKW), and is the process's
// only thread. It returns false for a lock of an open file description (F_OFD_SETLKW). Another thread could
// release the locks of a supposed deadlock. In doubt it returns false: then the cluster finds no deadlock.
func waitsForProcess(id uint32) bool {
	return thread.FcntlCommand(id) == unix.F_SETLKW && thread.IsAlone(id)
}

// otherLock returns the conflicting lock of a refused non-waiting request; nil for any other result.
func otherLock(result *storepb.Result) *storepb.AdvisoryLock {
	if locks := result.GetAdvisoryLocks(); result.GetCode() == storepb.Code_WOULD_BLOCK && len(locks) > 0 && locks[0].GetUntil() == 0 {
		return locks[0]
	}
	return nil
}

func lockOwnerOf(lock *storepb.AdvisoryLock) filelock.Owner {
	return filelock.Owner{Kind: lock.GetKind(), Number: ids.Owner(lock.GetOwner())}
}

// dropLimit limits the wait of a request for the cluster to record a release on this mount.
const dropLimit = 15 * time.Second

// awaitRelease waits up to a limit if a close(2) may just have released an owner's locks of a file on this
// mount. It reports whether the cluster has recorded the release.
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

// released is awaitRelease for requests on other hosts, which wait once for each close. An inode not in use
// here has no locks of this mount.
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

// holder returns the open file description with an owner's locks; nil during its release.
func (fs *fileSystem) holder(in *inode, key filelock.Owner) *filelock.Description {
	if key.Kind == storepb.LockKind_RECORD {
		return in.locks.LockedThrough(key.Number)
	}
	if handle, found := fs.files.Get(uint64(key.Number)); found {
		return &handle.locks
	}
	return nil
}

// lost reports whether another host may have a lock that was taken through this handle: its session has
// ended, or the lock was given up.
func (fs *fileSystem) lost(h *fileHandle) bool {
	session := h.locks.Session(0)
	return h.locks.IsLost() || session != 0 && session != fs.ops.Session()
}
