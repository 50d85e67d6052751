package fusefs

import (
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// fileHandle is one open regular file.
type fileHandle struct {
	inode *inode

	mu      sync.Mutex
	by      []*storepb.Look // the name it was opened by, as it was then or is since; none if it is not known
	thread  uint32          // that noted it last, and when
	noted   time.Time
	how     sight
	version uint64 // of what was seen on this mount, then

	session uint64 // in which locks were taken through it; 0: none was
	closing bool   // a descriptor of it was closed, perhaps the last one
}

func (h *fileHandle) name() []*storepb.Look {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by
}

// news answers what a thread sees through the handle, unless that was the last thing that anybody saw: to
// find out who the thread is takes some time.
func (h *fileHandle) news(thread uint32, seen []*storepb.Look, how sight, version uint64) []*storepb.Look {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(seen) == 0 {
		seen = h.by
	}
	now, before := nameOf(seen), nameOf(h.by)
	same := now.GetToken() == before.GetToken() && now.GetEmpty() == before.GetEmpty() && now.GetData() == before.GetData() && how == h.how
	if same && h.thread == thread && h.version == version && time.Since(h.noted) < lookAge/2 {
		return nil
	}
	h.thread, h.by, h.how, h.noted = thread, seen, how, time.Now()
	return seen
}

func (h *fileHandle) notedAt(version uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version = version
}

// Create is open(2) with O_CREAT of a name that the kernel did not find. Permissions are checked only of
// the directory then, so a file that came into being meanwhile elsewhere is opened here only if the
// caller may do that for sure. Otherwise the answer is ESTALE and the VFS looks again and judges itself.
func (fs *fileSystem) Create(
	interrupted <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut,
) (code fuse.Status) {
	defer fs.observed("create", time.Now(), &code)
	at, errno := fs.enter(&in.InHeader, in.NodeId, name)
	if errno != 0 {
		return status(errno)
	}
	result, errno := fs.create(interrupted, at.caller, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: at.parent, Name: at.name, Mode: syscall.S_IFREG | in.Mode&permissionBits,
		Exclusive: in.Flags&syscall.O_EXCL != 0,
	}}}, createAnswer(&in.InHeader))
	if errno != 0 {
		return status(errno)
	}
	attr := result.GetAttr()
	if !result.GetCreated() && !mayOpen(attr, &in.InHeader, in.Flags) {
		return status(syscall.ESTALE)
	}
	inode := fs.inodes.use(attr.GetIno())
	handle := &fileHandle{inode: inode, by: []*storepb.Look{{Parent: at.parent, Name: at.name}}}
	if !result.GetCreated() && len(result.GetLooks()) > 0 {
		handle.by = result.GetLooks()
	}
	if result.GetCreated() {
		inode.learn(content{version: attr.GetVersion()})
		fs.newFiles.note(in.Pid, attr)
		fs.sawThrough(handle, in.Caller, result.GetLooks(), made)
	} else if in.Flags&syscall.O_TRUNC != 0 {
		if attr, errno = fs.empty(fs.truncation(interrupted, at.caller, handle.by), inode); errno != 0 {
			fs.release(at.caller, inode)
			return status(errno)
		}
	}
	fillEntry(&out.EntryOut, attr)
	fs.opened(handle, &out.OpenOut)
	return fuse.OK
}

// Open asks nothing unless it truncates: the kernel has just looked the file up and checked permissions.
func (fs *fileSystem) Open(interrupted <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) (code fuse.Status) {
	defer fs.observed("open", time.Now(), &code)
	caller := callerOf(&in.InHeader)
	handle := &fileHandle{inode: fs.inodes.use(in.NodeId), by: fs.cameBy(in.Pid, in.NodeId)}
	if in.Flags&syscall.O_TRUNC != 0 {
		if _, errno := fs.empty(fs.truncation(interrupted, caller, handle.by), handle.inode); errno != 0 {
			fs.release(caller, handle.inode)
			return status(errno)
		}
	}
	fs.opened(handle, out)
	return fuse.OK
}

// opened takes over the use of an inode that its caller began.
func (fs *fileSystem) opened(handle *fileHandle, out *fuse.OpenOut) {
	out.Fh = fs.files.add(handle)
	out.OpenFlags = fuse.FOPEN_DIRECT_IO
}

// Release comes some time after the last close; nobody waits for it.
func (fs *fileSystem) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	code := fuse.OK
	defer fs.observed("release", time.Now(), &code)
	if handle, found := fs.files.get(in.Fh); found {
		fs.releaseLocks(in, handle)
		fs.files.remove(in.Fh)
		fs.release(callerOf(&in.InHeader), handle.inode)
	}
}

// Fsync has nothing to do: a write has been committed when it returned.
func (fs *fileSystem) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }

// mayOpen tells whether a caller is sure to have the permissions that open flags ask for.
func mayOpen(attr *storepb.Attr, caller *fuse.InHeader, flags uint32) bool {
	var need uint32
	switch flags & syscall.O_ACCMODE {
	case syscall.O_RDONLY:
		need = namespace.MayRead
	case syscall.O_WRONLY:
		need = namespace.MayWrite
	default:
		need = namespace.MayRead | namespace.MayWrite
	}
	if flags&syscall.O_TRUNC != 0 {
		need |= namespace.MayWrite
	}
	return namespace.Permits(viewerOf(caller), attr, need)
}
