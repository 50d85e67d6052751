package fusefs

import (
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

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

	inodes *inodeTable
	files  *kernel.Handles[*fileHandle]
	dirs   *kernel.Handles[*dirHandle]

	calls        *calls
	judgements   judgements
	observations *observation.Memory

	rootIsNobody func() bool   // nil: it is not
	longestWait  time.Duration // for a lock; 0: for ever
	pidNamespace uint64        // of this process; 0: it is not known
	ended        atomic.Bool   // it is unmounted
	insisting    atomic.Int64  // how much the cluster has not been told of that it has to know
}

func newFileSystem(ops Operator, opts Options) *fileSystem {
	namespace, _ := hostinfo.PIDNamespace()
	return &fileSystem{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		ops:           ops,
		logger:        opts.Logger,
		observe:       opts.Observer,
		inodes:        newInodeTable(),
		files:         kernel.NewHandles[*fileHandle](),
		dirs:          kernel.NewHandles[*dirHandle](),
		calls:         newCalls(),
		judgements:    newJudgements(),
		observations:  observation.New(opts.Family),
		rootIsNobody:  opts.RootIsNobody,
		longestWait:   kernel.LongestWait(),
		pidNamespace:  namespace,
	}
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
