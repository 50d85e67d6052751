package fusefs

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/estate"
	"lockfs/fusefs/filelock"
	"lockfs/fusefs/kernel"
	"lockfs/fusefs/mountpoint"
	"lockfs/fusefs/observation"
	"lockfs/raftstore/hostinfo"
)

var _ fuse.RawFileSystem = (*fileSystem)(nil)

// fileSystem answers the kernel's requests. The embedded one answers, with ENOSYS, only what the kernel
// does not send to this mount: READDIRPLUS is not negotiated, and WRITEV is a form of WRITE that go-fuse
// falls back from.
type fileSystem struct {
	fuse.RawFileSystem

	ops     Operator
	logger  *slog.Logger
	observe Observer

	inodes  *inodeTable
	unnamed *unnamed
	files   *kernel.Handles[*fileHandle]
	dirs    *kernel.Handles[*dirHandle]

	calls        *calls
	judgements   judgements
	again        lookAgains
	observations *observation.Memory

	estate  *estate.Estate // nil: none
	crashed uint64         // handles up to this number are those of a process that was killed
	finding sync.Mutex     // over those that are not in its estate

	rootIsNobody func(context.Context) (bool, error) // nil: it is not
	longestWait  time.Duration                       // for a lock; 0: for ever
	pidNamespace uint64                              // of this process; 0: it is not known
	ended        atomic.Bool                         // it is unmounted
	waits        lockWaits                           // that no thread waits with, as the mount is not served
	insisting    atomic.Int64                        // how much the cluster has not been told of that it has to know
}

func newFileSystem(ops Operator, opts Options) *fileSystem {
	namespace, _ := hostinfo.PIDNamespace()
	fs := &fileSystem{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		ops:           ops,
		logger:        cmp.Or(opts.Logger, slog.Default()),
		observe:       opts.Observer,
		files:         kernel.NewHandles[*fileHandle](),
		dirs:          kernel.NewHandles[*dirHandle](),
		calls:         newCalls(),
		judgements:    newJudgements(),
		again:         newLookAgains(),
		observations:  observation.New(opts.Family),
		rootIsNobody:  opts.RootIsNobody,
		longestWait:   kernel.LongestWait(),
		pidNamespace:  namespace,
		unnamed:       newUnnamed(),
	}
	fs.inodes = newInodeTable(fs.keepLocks)
	fs.waits.resume()
	return fs
}

// OnUnmount is part of fuse.RawFileSystem.
func (fs *fileSystem) OnUnmount() { fs.ended.Store(true) }

// String is part of fuse.RawFileSystem.
func (fs *fileSystem) String() string { return mountpoint.FSType }

// observed reports a request that ends; handlers defer it with the address of their answer.
func (fs *fileSystem) observed(op string, start time.Time, status *fuse.Status) {
	if fs.observe != nil {
		fs.observe(op, syscall.Errno(*status), time.Since(start))
	}
}

// keepLocks has those known that may have locks of an inode, to whoever goes on should this process be killed.
func (fs *fileSystem) keepLocks(in *inode) {
	in.locks.KeepIn(func(key filelock.Owner, may filelock.Having, handle uint64) {
		owner := estate.Owner{Ino: in.ino, Kind: key.Kind, Number: key.Number}
		switch may {
		case filelock.Nothing:
			fs.estate.LocksNothing(owner)
		case filelock.Locks:
			fs.estate.Locks(owner, handle)
		case filelock.Releasing:
			fs.estate.Locks(owner, estate.Released)
		case filelock.Losing:
			fs.estate.Locks(owner, estate.Lost)
		}
	})
}
