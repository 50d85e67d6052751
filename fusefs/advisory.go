package fusefs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/storepb"
)

const (
	// releaseWait is how long a lock that must not wait does wait for a close(2) on this mount that has
	// returned but is not known here yet: the kernel tells of it afterwards.
	releaseWait = 5 * time.Millisecond
	// dropLimit is how long a lock waits for the cluster to be told of a close before it.
	dropLimit = 15 * time.Second
	// dropRetry is the pause after the cluster could not be told of a close.
	dropRetry = 200 * time.Millisecond
)

// GetLk is F_GETLK. The pid of a process on another host means nothing here and is 0.
func (fs *fileSystem) GetLk(_ <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) (code fuse.Status) {
	defer fs.observed("getlk", time.Now(), &code)
	handle, errno := fs.lockable(in)
	if errno != 0 {
		return status(errno)
	}
	session := fs.ops.Session()
	if session == 0 {
		return status(syscall.ETIMEDOUT) // which locks are the caller's own cannot be told
	}
	result, errno := fs.query(&storepb.Query{Query: &storepb.Query_TestLock{
		TestLock: &storepb.TestLock{Session: session, Lock: takeLock(in, handle, false)},
	}})
	if errno == 0 && fs.lost(handle) {
		errno = syscall.EIO
	}
	if errno != 0 {
		return status(errno)
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
		return status(errno)
	}
	result, errno := fs.takeLock(interrupted, in, handle, false)
	if result.GetCode() == storepb.Code_WOULD_BLOCK && fs.isOurs(result) {
		fs.awaitRelease(handle.inode)
		_, errno = fs.takeLock(interrupted, in, handle, false)
	}
	return status(errno)
}

// SetLkw is a lock that waits.
func (fs *fileSystem) SetLkw(interrupted <-chan struct{}, in *fuse.LkIn) (code fuse.Status) {
	defer fs.observed("setlkw", time.Now(), &code)
	handle, errno := fs.lockable(in)
	if errno != 0 {
		return status(errno)
	}
	_, errno = fs.takeLock(interrupted, in, handle, true)
	return status(errno)
}

func (fs *fileSystem) lockable(in *fuse.LkIn) (*fileHandle, syscall.Errno) {
	handle, found := fs.files.get(in.Fh)
	if !found {
		return nil, syscall.EBADF
	}
	return handle, 0
}

func (fs *fileSystem) isOurs(result *storepb.Result) bool {
	locks := result.GetAdvisoryLocks()
	return len(locks) > 0 && locks[0].GetSession() == fs.ops.Session()
}

func (fs *fileSystem) takeLock(
	interrupted <-chan struct{}, in *fuse.LkIn, handle *fileHandle, wait bool,
) (*storepb.Result, syscall.Errno) {
	op := takeLock(in, handle, wait)
	if op.GetKind() == storepb.LockKind_RECORD {
		if errno := handle.inode.lockedBy(in.Owner, dropLimit); errno != 0 {
			return nil, errno
		}
		handle.owns(in.Owner)
		op.ByProcess = wait && waitsForProcess(in.Pid)
	} else if !handle.inode.awaitDrop(lockOwner{op.GetKind(), in.Owner}, dropLimit) {
		return nil, syscall.ETIMEDOUT
	}
	op.Session = handle.lockSession(0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if wait {
		defer fs.bounded(cancel)()
		go func() {
			select {
			case <-interrupted:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	result, err := fs.ops.Lock(ctx, callerOf(&in.InHeader), op)
	if err != nil && ctx.Err() != nil {
		select {
		case <-interrupted:
			return nil, syscall.EINTR
		default:
			return nil, syscall.EAGAIN // see bounded
		}
	}
	if result.GetCode() == storepb.Code_OK && handle.lockSession(op.GetSession()) != op.GetSession() {
		return nil, syscall.EIO // another thread's lock through this descriptor was in a session that has ended
	}
	answer, errno := fs.outcome(result, err)
	return answer, ofInode(errno)
}

func takeLock(in *fuse.LkIn, handle *fileHandle, wait bool) *storepb.TakeLock {
	op := &storepb.TakeLock{
		Ino: handle.inode.ino, Kind: storepb.LockKind_RECORD, Owner: in.Owner,
		Start: in.Lk.Start, End: in.Lk.End, Pid: in.Lk.Pid, Wait: wait,
	}
	if in.LkFlags&fuse.FUSE_LK_FLOCK != 0 {
		op.Kind = storepb.LockKind_FLOCK
	}
	switch in.Lk.Typ {
	case syscall.F_RDLCK:
		op.Type = storepb.LockType_SHARED
	case syscall.F_WRLCK:
		op.Type = storepb.LockType_EXCLUSIVE
	}
	return op
}

// waitsForProcess tells whether a thread waits for a lock that is its process's (F_SETLKW), rather than an
// open file description's (F_OFD_SETLKW), and is all that there is of its process: another thread could
// release what others wait for. The request does not tell, but the system call does, which the thread is in.
// In doubt it does not: then no deadlock is found, as for an open file description.
func waitsForProcess(thread uint32) bool {
	call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", thread))
	if err != nil {
		return false
	}
	fields := bytes.Fields(call)
	if len(fields) < 3 {
		return false
	}
	number, err := strconv.Atoi(string(fields[0]))
	command, errCommand := strconv.ParseUint(string(fields[2]), 0, 64)
	return err == nil && errCommand == nil && number == unix.SYS_FCNTL && command == unix.F_SETLKW && isAlone(thread)
}

func isAlone(thread uint32) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	return err == nil && bytes.Contains(status, []byte("\nThreads:\t1\n"))
}

// Flush is close(2) of a descriptor: the locks of the process on the file go, whichever descriptor they were
// taken through (fcntl(2)). A write has been committed when it returned.
func (fs *fileSystem) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	handle, found := fs.files.get(in.Fh)
	if !found {
		return fuse.OK
	}
	handle.disowns(in.LockOwner)
	if !handle.inode.isLockedBy(in.LockOwner) {
		return fuse.OK
	}
	fs.beginDrop(callerOf(&in.InHeader), handle.inode, storepb.LockKind_RECORD, in.LockOwner)()
	return fuse.OK
}

// releaseLocks is for the last close of an open file description: its flock goes, and what it locked as
// itself (F_OFD_SETLK), which no flush has named. All of it is under way before the cluster is told of the first: the
// kernel may give the owner's number to the next file that is opened, whose locks must come after.
func (fs *fileSystem) releaseLocks(in *fuse.ReleaseIn, handle *fileHandle) {
	caller := callerOf(&in.InHeader)
	var drops []func()
	if in.ReleaseFlags&fuse.FUSE_RELEASE_FLOCK_UNLOCK != 0 {
		drops = append(drops, fs.beginDrop(caller, handle.inode, storepb.LockKind_FLOCK, in.LockOwner))
	}
	for _, owner := range handle.owners() {
		if handle.inode.isLockedBy(owner) {
			drops = append(drops, fs.beginDrop(caller, handle.inode, storepb.LockKind_RECORD, owner))
		}
	}
	for _, drop := range drops {
		drop()
	}
}

// beginDrop begins to release what an owner has of a file; the function that it answers does it. If the cluster cannot be
// told now it is told later; until then the owner gets no new lock of that file, which would be released too.
func (fs *fileSystem) beginDrop(caller *storepb.Caller, in *inode, kind storepb.LockKind, owner uint64) (drop func()) {
	dropped := in.beginDrop(kind, owner)
	op := &storepb.Op{Op: &storepb.Op_DropLocks{
		DropLocks: &storepb.DropLocks{Ino: in.ino, Kind: kind, Owners: []uint64{owner}},
	}}
	return func() {
		if _, err := fs.ops.Mutate(context.Background(), caller, op); err == nil {
			dropped()
			return
		}
		go func() {
			defer dropped()
			for !fs.ended.Load() { // should another session begin meanwhile, the old one takes the locks along
				if _, err := fs.ops.Mutate(context.Background(), caller, op); err == nil {
					return
				}
				time.Sleep(dropRetry)
			}
		}()
	}
}

// awaitRelease lets a close(2) of this mount take effect.
func (fs *fileSystem) awaitRelease(in *inode) {
	time.Sleep(releaseWait)
	in.awaitDrops(dropLimit)
}

// bounded ends a wait before the kernel would end the whole mount for it. The function it answers ends that.
func (fs *fileSystem) bounded(end func()) (stop func()) {
	if fs.longestWait == 0 {
		return func() {}
	}
	timer := time.AfterFunc(fs.longestWait, end)
	return func() { timer.Stop() }
}

// longestWait reads for how long the kernel lets a request take; 0: for ever.
func longestWait() time.Duration {
	limit := time.Duration(0)
	for _, name := range []string{"default_request_timeout", "max_request_timeout"} {
		text, err := os.ReadFile("/proc/sys/fs/fuse/" + name)
		if err != nil {
			continue // a kernel before 6.16 has no limits
		}
		seconds, err := strconv.Atoi(string(bytes.TrimSpace(text)))
		if err != nil || seconds <= 0 {
			continue
		}
		if allowed := time.Duration(seconds) * time.Second / 2; limit == 0 || allowed < limit {
			limit = allowed
		}
	}
	return limit
}
