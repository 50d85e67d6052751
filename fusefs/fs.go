package fusefs

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
)

// Operator does operations of the namespace. An error means that no result could be had:
// context.DeadlineExceeded that the time for one was up. What the namespace itself refuses is a result
// with a code. The Operator limits the time that an operation takes, and it fills in the caller's host.
type Operator interface {
	// Mutate commits one change; it returns once a majority has it. If ctx ends before, it may have been done or not, but
	// will not be done after what is asked next.
	Mutate(ctx context.Context, caller *storepb.Caller, op *storepb.Op) (*storepb.Result, error)
	// Create is Mutate for what makes a name. answer renders what will tell the kernel of success: should
	// this process be killed before it does, somebody else can, so that no name is left behind which its
	// maker was not told of. It is called at most once, and answers nil where there is nothing to tell.
	// Once ctx has ended, nobody will be told: the name is taken back if it was made exclusively, or never made.
	Create(ctx context.Context, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte) (*storepb.Result, error)
	// GoesOn says that a thread has asked for something else after a creation: it was told of that.
	GoesOn(thread uint32)
	// Query answers with everything that was committed when it was asked, unless ctx ends before.
	Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error)
	// TakeLock takes an advisory lock, or releases it; to wait for one has no limit of time. The code CANCELLED says that
	// the request was not done, since ctx has ended, or for the error if there is one. After any other error nobody can tell
	// whether it was, and the lock may still come if it was waited for, until its owner drops what it has. NOT_FOUND says that
	// the owner has done so while it waited. Without a session in op it is taken in the one in use, noted there.
	TakeLock(ctx context.Context, caller *storepb.Caller, op *storepb.TakeLock) (*storepb.Result, error)
	// FollowRemovals tells of files and directories that others have removed, until ctx ends.
	FollowRemovals(ctx context.Context, removed func(parent uint64, name string, ino uint64))
	// Session is the session in which advisory locks are taken, once the cluster has confirmed it; 0 if there
	// is none.
	Session() uint64
	// Status is what the Operator knows of itself, at once.
	Status() *storepb.MountStatus
}

// Observer is told of each request of the kernel that is more than a formality (as flush and fsync are
// here): its name ("lookup"), its outcome (0 is success) and how long it took. It is called from many
// goroutines.
type Observer func(op string, code syscall.Errno, d time.Duration)

var _ fuse.RawFileSystem = (*fileSystem)(nil)

// fileSystem answers the kernel's requests. The embedded one answers, with ENOSYS, only what the kernel
// does not send to this mount: READDIRPLUS is not negotiated, and WRITEV is a form of WRITE that go-fuse
// falls back from.
type fileSystem struct {
	fuse.RawFileSystem

	ops     Operator
	logger  *slog.Logger
	observe Observer

	inodes *inodeTable
	files  *handles[*fileHandle]
	dirs   *handles[*dirHandle]

	newFiles *perThread[*storepb.Attr]
	walks    *perThread[walked]
	entered  *perThread[entered]
	judged   *perThread[judged]
	listings *perThread[listing]
	family   func(thread uint32) iter.Seq[Process]
	looks    *looks

	longestWait  time.Duration // for a lock; 0: for ever
	pidNamespace uint64        // of this process; 0: it is not known
	ended        atomic.Bool   // it is unmounted
}

func newFileSystem(ops Operator, opts Options) *fileSystem {
	namespace, _ := hostinfo.PIDNamespace()
	return &fileSystem{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		ops:           ops,
		logger:        opts.Logger,
		observe:       opts.Observer,
		inodes:        newInodeTable(),
		files:         newHandles[*fileHandle](),
		dirs:          newHandles[*dirHandle](),
		newFiles:      newPerThread[*storepb.Attr](newFileAge),
		walks:         newPerThread[walked](0),
		entered:       newPerThread[entered](enterLimit),
		judged:        newPerThread[judged](0),
		listings:      newPerThread[listing](sameThread),
		family:        opts.Family,
		looks:         newLooks(),
		longestWait:   longestWait(),
		pidNamespace:  namespace,
	}
}

// OnUnmount is part of fuse.RawFileSystem.
func (fs *fileSystem) OnUnmount() { fs.ended.Store(true) }

// String is part of fuse.RawFileSystem.
func (fs *fileSystem) String() string { return fsType }

// observed reports a request that ends; handlers defer it with the address of their answer.
func (fs *fileSystem) observed(op string, start time.Time, status *fuse.Status) {
	if fs.observe != nil {
		fs.observe(op, syscall.Errno(*status), time.Since(start))
	}
}

// mutate does not hand on the request's interruption: a change is not given up half way, unless its caller was killed and
// the cluster does not answer (EINTR, which nobody gets to see). The result is nil when there is none, and never nil
// without an error.
func (fs *fileSystem) mutate(
	interrupted <-chan struct{}, caller *storepb.Caller, op *storepb.Op,
) (*storepb.Result, syscall.Errno) {
	ctx := whileWaitedFor(request{interrupted, caller.GetPid()}, killedGrace)
	defer ctx.end()
	result, err := fs.ops.Mutate(ctx, caller, op)
	if err != nil && ctx.Err() != nil {
		return nil, syscall.EINTR
	}
	return fs.outcome(result, err)
}

// insistPause is before the cluster is told once more what it could not be told.
const insistPause = 200 * time.Millisecond

// insist commits what the cluster has to know sometime: in the background if not now, until it knows or the mount has
// ended. Then it calls over.
func (fs *fileSystem) insist(caller *storepb.Caller, op *storepb.Op, over func()) {
	if fs.told(caller, op) {
		over()
		return
	}
	fs.insistLater(caller, op, over)
}

// insistLater is insist for who does not wait for the first try either.
func (fs *fileSystem) insistLater(caller *storepb.Caller, op *storepb.Op, over func()) {
	go func() {
		defer over()
		for !fs.ended.Load() && !fs.told(caller, op) {
			time.Sleep(insistPause)
		}
	}()
}

func (fs *fileSystem) told(caller *storepb.Caller, op *storepb.Op) bool {
	_, err := fs.ops.Mutate(context.Background(), caller, op)
	return err == nil
}

// create is mutate for what makes a name. If the caller is killed while it waits, nobody is told of the
// name, so there must be none: EINTR, which nobody gets to see.
func (fs *fileSystem) create(
	interrupted <-chan struct{}, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (*storepb.Result, syscall.Errno) {
	ctx := whileWaitedFor(request{interrupted, caller.GetPid()}, 0)
	defer ctx.end()
	result, err := fs.ops.Create(ctx, caller, op, answer)
	if err != nil && ctx.Err() != nil {
		return nil, syscall.EINTR
	}
	return fs.outcome(result, err)
}

// query gives up, with EINTR, when the caller is killed: others may wait behind it for the directory's lock.
func (fs *fileSystem) query(by request, query *storepb.Query) (*storepb.Result, syscall.Errno) {
	ctx := whileWaitedFor(by, 0)
	defer ctx.end()
	result, err := fs.ops.Query(ctx, query)
	if err != nil && ctx.Err() != nil {
		return nil, syscall.EINTR
	}
	return fs.outcome(result, err)
}

func (fs *fileSystem) outcome(result *storepb.Result, err error) (*storepb.Result, syscall.Errno) {
	switch {
	case err == nil:
		return result, Errno(result.GetCode())
	case errors.Is(err, context.DeadlineExceeded):
		return nil, syscall.ETIMEDOUT
	}
	fs.logger.Error("operation has no result", "error", err)
	return nil, syscall.EIO
}

// goesOn is called when a request is not part of an open(2) that created something. What the Operator keeps
// of the answer to that must not be given to anybody any more, as the file may have changed since.
func (fs *fileSystem) goesOn(thread uint32) {
	if thread != 0 {
		fs.ops.GoesOn(thread)
	}
}

func callerOf(header *fuse.InHeader) *storepb.Caller {
	return &storepb.Caller{Uid: header.Uid, Gid: header.Gid, Pid: header.Pid}
}
