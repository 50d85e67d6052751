package fusefs

import (
	"fmt"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/formats/lockfact"
	"lockfs/fusefs/lookguard"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// lockXattrs describes the lock of an inode in its present state. Reading a value is an observation of the
// lock: the program may read "stale" and then remove this lock. Asking for the size of a value is none.
func (fs *fileSystem) lockXattrs(interrupted <-chan struct{}, header *fuse.InHeader, look bool) ([]*storepb.Xattr, syscall.Errno) {
	lock, seen, errno := fs.lockOf(interrupted, header)
	if errno != 0 {
		return nil, errno
	}
	if look {
		fs.observations.Saw(header.Caller, seen, lookguard.Read)
	}
	return fs.describeLock(lock), 0
}

// lockOf returns the lock of an inode under the name of the caller's last lookup, else under its first name.
// nil: it has no name.
func (fs *fileSystem) lockOf(interrupted <-chan struct{}, header *fuse.InHeader) (*storepb.Lock, []*storepb.Observation, syscall.Errno) {
	ino, by := ids.Inode(header.NodeId), thread.NewRequest(interrupted, header.Pid)
	if ino == namespace.RootIno {
		return nil, nil, 0
	}
	if name := nameOf(fs.calls.cameBy(header.Pid, ino)); name != nil {
		result, errno := fs.getLock(by, &storepb.GetLock{Parent: name.GetParent(), Name: name.GetName()})
		if errno == 0 && ids.Inode(result.GetAttr().GetIno()) == ino {
			return result.GetLocks()[0], result.GetObservations(), 0
		}
	}
	result, errno := fs.getLock(by, &storepb.GetLock{Ino: uint64(ino)})
	switch errno {
	case 0:
		return result.GetLocks()[0], result.GetObservations(), 0
	case syscall.ENOENT: // ESTALE, if the inode is gone
		_, errno = fs.attr(by, ino)
	}
	return nil, nil, errno
}

func (fs *fileSystem) getLock(by thread.Request, which *storepb.GetLock) (*storepb.Result, syscall.Errno) {
	return fs.query(by, &storepb.Query{Query: &storepb.Query_GetLock{GetLock: which}})
}

// describeLock omits unknown values. Locks and exclusive names have these attributes; other data has none.
// The VFS permits user attributes only for files and directories.
func (fs *fileSystem) describeLock(lock *storepb.Lock) []*storepb.Xattr {
	if kind := lock.GetAttr().GetMode() & syscall.S_IFMT; lock.GetBecause() == "" && !lock.GetExclusive() || kind != syscall.S_IFREG && kind != syscall.S_IFDIR {
		return nil
	}
	var attributes []*storepb.Xattr
	add := func(name, value string) {
		if value != "" {
			attributes = append(attributes, &storepb.Xattr{Name: []byte(namespace.LockXattrs + name), Value: []byte(value)})
		}
	}
	facts := lock.GetFacts()
	add("state", lock.GetState())
	add("format", lockfact.Format(facts.GetFormat()).String())
	add("holder", facts.GetHolder())
	add("host", facts.GetHost())
	if pid := facts.GetPid(); pid != 0 {
		add("pid", fmt.Sprint(pid))
	}
	add("token", fmt.Sprint(lock.GetToken()))
	add("acquired", lockjson.Timestamp(lock.GetAcquired()))
	add("renewed", lockjson.Timestamp(lock.GetAttr().GetMtime()))
	if at := facts.GetExpiresAt(); at != 0 {
		add("expires", lockjson.Timestamp(at))
	}
	if fs.isWatched(lock) {
		add("watched", "yes")
	}
	return attributes
}

// isWatched reports whether the end of a lock's process will be noticed. On this host it is not for a process
// in the pid namespace of an earlier mount.
func (fs *fileSystem) isWatched(lock *storepb.Lock) bool {
	process := lock.GetFacts().GetProcess()
	if process == nil || lock.GetState() == string(lockfact.Stale) {
		return false
	}
	return lock.GetFacts().GetHost() != fs.ops.Status().GetHost() || process.GetPidNamespace() == fs.pidNamespace
}
