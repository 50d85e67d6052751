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

	"lockfs/fusefs/crashstate"
	"lockfs/fusefs/filelock"
	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/lookguard"
	"lockfs/fusefs/mountpoint"
	"lockfs/raftstore/hostinfo"
)

var _ fuse.RawFileSystem = (*fileSystem)(nil)

// fileSystem handles the kernel's requests. The embedded file system returns ENOSYS for requests which the
// kernel does not send to this mount: READDIRPLUS is not negotiated, and go-fuse handles WRITEV as WRITE.
type fileSystem struct {
	fuse.RawFileSystem

	ops     Operator
	logger  *slog.Logger
	observe Observer

	inodes  *inodeTable
	unnamed *unnamed
	files   *fuseattr.Handles[*fileHandle]
	dirs    *fuseattr.Handles[*dirHandle]

	calls        *calls
	judgements   judgements
	again        lookAgains
	observations *lookguard.Memory

	estate  *crashstate.Estate // nil: none
	crashed uint64             // handles up to this number may be of a crashed process
	finding sync.Mutex         // guards the search for handles missing in the crash state

	rootIsNobody func(context.Context) (bool, error) // nil: root has its rights
	longestWait  time.Duration                       // for a lock; 0: no limit
	pidNamespace uint64                              // of this process; 0: unknown
	ended        atomic.Bool                         // unmounted
	waits        lockWaits                           // suspended while the mount is not served
	waitCommands *waitCommands                       // of these
	insisting    atomic.Int64                        // operations which the cluster must still record
}

func newFileSystem(ops Operator, opts Options) *fileSystem {
	namespace, _ := hostinfo.PIDNamespace()
	fs := &fileSystem{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		ops:           ops,
		logger:        cmp.Or(opts.Logger, slog.Default()),
		observe:       opts.Observer,
		files:         fuseattr.NewHandles[*fileHandle](),
		dirs:          fuseattr.NewHandles[*dirHandle](),
		calls:         newCalls(),
		judgements:    newJudgements(),
		again:         newLookAgains(),
		observations:  lookguard.New(opts.Family),
		rootIsNobody:  opts.RootIsNobody,
		longestWait:   fuseattr.LongestWait(),
		pidNamespace:  namespace,
		unnamed:       newUnnamed(),
		waitCommands:  newWaitCommands(),
	}
	fs.inodes = newInodeTable(fs.keepLocks)
	fs.waits.resume()
	return fs
}

func (fs *fileSystem) OnUnmount() { fs.ended.Store(true) }

func (fs *fileSystem) String() string { return mountpoint.FSType }

// observed reports the end of a request; handlers defer it with the address of their status.
func (fs *fileSystem) observed(op string, start time.Time, status *fuse.Status) {
	if fs.observe != nil {
		fs.observe(op, syscall.Errno(*status), time.Since(start))
	}
}

// keepLocks records the possible owners of locks of an inode in the crash state, for TakeOver after a crash.
func (fs *fileSystem) keepLocks(in *inode) {
	in.locks.KeepIn(func(key filelock.Owner, may filelock.Having, handle uint64) {
		owner := crashstate.Owner{Ino: in.ino, Kind: key.Kind, Number: key.Number}
		switch may {
		case filelock.Nothing:
			fs.estate.LocksNothing(owner)
		case filelock.Locks:
			fs.estate.Locks(owner, handle)
		case filelock.Releasing:
			fs.estate.Locks(owner, crashstate.Released)
		case filelock.Losing:
			fs.estate.Locks(owner, crashstate.Lost)
		}
	})
}

// Tmpfile returns ENOTSUP: every inode begins with a name.
func (fs *fileSystem) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.ENOTSUP
}

// CopyFileRange returns ENOSYS, so the kernel copies by reading and writing.
func (fs *fileSystem) CopyFileRange(<-chan struct{}, *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}

// Ioctl returns ENOTTY, as for any file but devices.
func (fs *fileSystem) Ioctl(
	<-chan struct{}, *fuse.IoctlIn, []byte, *fuse.IoctlOut, []byte,
) fuse.Status {
	return fuseattr.Status(syscall.ENOTTY)
}
