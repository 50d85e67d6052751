package fusefs

import (
	"context"
	"iter"
	"log/slog"
	"syscall"
	"time"

	"lockfs/fusefs/lookguard"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// Operator executes operations of the namespace. An error means no result; context.DeadlineExceeded means the
// end of the time limit. A refusal of the namespace is a result with a code. The Operator limits the time of
// operations, and fills in the caller's host.
type Operator interface {
	// Mutate commits one change, and returns once a majority has stored it. If ctx ends before, the change
	// may be done or not, but not after a later request.
	Mutate(ctx context.Context, caller *storepb.Caller, op *storepb.Op) (*storepb.Result, error)
	// Create is Mutate for new names. answer encodes the success for the kernel: after a crash of this
	// process, another process can deliver it, so no unreported name stays. Create calls it at most once; it
	// returns nil without an answer to deliver. Once ctx has ended, the caller gets no answer: the Operator
	// takes an exclusive name back, or never makes it.
	Create(ctx context.Context, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte) (*storepb.Result, error)
	// GoesOn reports a later request of a thread after a creation, which proves the delivery of the answer.
	GoesOn(thread uint32)
	// Query returns a result with all changes committed before it, unless ctx ends first.
	Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error)
	// NameChanged returns a channel which is closed once a name may have changed since the state after a
	// command: another lock, none, or a stale one. end ends the wait.
	NameChanged(name *storepb.Observation, since ids.Index) (changed <-chan struct{}, end func())
	// EventsAfter returns a channel which is closed once there may be an event after a number. end ends the
	// wait.
	EventsAfter(number uint64) (there <-chan struct{}, end func())
	// StateAfter returns the last known command, and a channel which is closed once a command after index is
	// known. The Operator learns of commands once a second. end ends the wait.
	StateAfter(index ids.Index) (known ids.Index, changed <-chan struct{}, end func())
	// RequestLock takes or releases an advisory lock. With the code WAITING it also returns the waiting
	// request, for AwaitLock and InterruptLock. The code CANCELLED with an error means that the request was
	// not done. After any other error the outcome is unknown: a lock may still come, until its owner drops
	// its locks. If op has no session, RequestLock uses the current one and records it there.
	RequestLock(caller *storepb.Caller, op *storepb.TakeLock) (*storepb.Result, *storepb.AwaitLock, error)
	// AwaitLock waits, without a time limit, until a request has its lock or stops waiting. NOT_FOUND: the
	// owner has dropped its locks. WAITING: ctx has ended or interrupted was closed before.
	AwaitLock(ctx context.Context, interrupted <-chan struct{}, request *storepb.AwaitLock) (*storepb.Result, error)
	// InterruptLock ends the wait of a request: CANCELLED, or OK if it has its lock. After an error the
	// outcome is unknown.
	InterruptLock(caller *storepb.Caller, request *storepb.AwaitLock) (*storepb.Result, error)
	// FollowRemovals reports files and directories removed by other sessions, until ctx ends. A removal
	// without an inode reports a possible gap.
	FollowRemovals(ctx context.Context, removed func(namespace.Removal))
	// AwaitRelease reports whether the holder of a conflicting lock of another session has released it, by a
	// release in progress there. It takes at most 50 ms.
	AwaitRelease(ctx context.Context, wanted *storepb.TakeLock, inTheWay *storepb.AdvisoryLock) bool
	// AnswerReleases answers other mounts, until ctx ends, whether an owner here is releasing its locks of a
	// file. released waits for such a release, once for each close; several goroutines may call it at once.
	AnswerReleases(ctx context.Context, released func(ids.Inode, storepb.LockKind, ids.Owner) bool)
	// Session returns the session for advisory locks, once the cluster has confirmed it; 0: none.
	Session() ids.Session
	// Status returns the Operator's own status, without a wait.
	Status() *storepb.MountStatus
}

// Options are all optional.
type Options struct {
	Logger *slog.Logger // slog.Default() if nil
	FsName string       // source in /proc/mounts; "lockfs" if empty
	Debug  bool         // log every request and answer
	// MountOptions are further file-system independent options of mount(8): ro, noexec, ...
	MountOptions []string
	Observer     Observer
	Budgets      *Budgets // per user; NewBudgets(Limits{}) if nil
	// RootIsNobody reports whether root of this host has only the rights of uid 65534 (root squash), once
	// this is known. nil: root has all rights.
	RootIsNobody func(context.Context) (bool, error)
	// Family returns the process of a thread and its nearest ancestors in the same process group, nearest
	// first. It returns none for an invisible thread. nil: no observation guards a removal.
	Family func(thread uint32) iter.Seq[lookguard.Process]
}

// Observer receives the name ("lookup"), the outcome (0 is success) and the duration of each request, except
// formalities such as flush and fsync. Many goroutines call it.
type Observer func(op string, code syscall.Errno, d time.Duration)
