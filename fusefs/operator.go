package fusefs

import (
	"context"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
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
	// NameChanged returns a channel that is closed once a name may be another lock than in the state after a command, or none any more, or stale.
	// end ends the wait.
	NameChanged(name *storepb.Observation, since ids.Index) (changed <-chan struct{}, end func())
	// EventsAfter returns a channel that is closed once there may be an event after a number. end ends the wait.
	EventsAfter(number uint64) (there <-chan struct{}, end func())
	// StateAfter returns the last command of which the Operator knows, and a channel that is closed once it knows of one after index. It hears
	// of commands once a second. end ends the wait.
	StateAfter(index ids.Index) (known ids.Index, changed <-chan struct{}, end func())
	// RequestLock takes an advisory lock, or releases it. With the code WAITING it also returns the request that waits now, for AwaitLock
	// and InterruptLock. The code CANCELLED with an error says that the request was not done. After any other error the outcome is unknown,
	// and a lock that was waited for may still come, until its owner drops its locks. Without a session in op the lock is taken in the one
	// in use, which is noted there.
	RequestLock(caller *storepb.Caller, op *storepb.TakeLock) (*storepb.Result, *storepb.AwaitLock, error)
	// AwaitLock waits, without a limit of time, until a request has become a lock, or does not wait any more: NOT_FOUND says that the
	// owner has dropped its locks. The code WAITING says that ctx has ended or interrupted was closed before.
	AwaitLock(ctx context.Context, interrupted <-chan struct{}, request *storepb.AwaitLock) (*storepb.Result, error)
	// InterruptLock has a request wait no more: CANCELLED, or OK if it has become a lock. After an error the outcome is unknown.
	InterruptLock(caller *storepb.Caller, request *storepb.AwaitLock) (*storepb.Result, error)
	// FollowRemovals reports files and directories that other sessions have removed, until ctx ends. A removal of no inode says
	// that some may not have been reported.
	FollowRemovals(ctx context.Context, removed func(namespace.Removal))
	// AwaitRelease reports whether the holder of a lock of another session that is in the way of a request has released it, because a
	// release was in progress there. It takes 50 ms at most.
	AwaitRelease(ctx context.Context, wanted *storepb.TakeLock, inTheWay *storepb.AdvisoryLock) bool
	// AnswerReleases tells other mounts whether a release is in progress of what an owner here has locked of a file, until ctx ends. released
	// waits for one that is, once for each close, and may be called by several goroutines at once.
	AnswerReleases(ctx context.Context, released func(ids.Inode, storepb.LockKind, ids.Owner) bool)
	// Session is the session in which advisory locks are taken, once the cluster has confirmed it; 0 if there
	// is none.
	Session() ids.Session
	// Status is what the Operator knows of itself, at once.
	Status() *storepb.MountStatus
}
