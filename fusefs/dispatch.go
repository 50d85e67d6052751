package fusefs

import (
	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/control"
	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/inotify"
	"lockfs/fusefs/serve"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

var _ fuse.RawFileSystem = (*dispatcher)(nil)

// dispatcher joins the file system and the control directory in its root. It passes each request to one of
// the two, and records the inodes known to the kernel before the kernel gets them. The control directory
// refuses requests about both. In all methods, i is closed when the caller gets a signal.
type dispatcher struct {
	*fileSystem
	control control.Directory
	known   *inotify.Known
}

func newDispatcher(fs *fileSystem, known *inotify.Known, budgets control.Budgets) *dispatcher {
	return &dispatcher{fileSystem: fs, control: control.New(fs.ops, fs, fs.observations, budgets, fs.logger), known: known}
}

// of returns the handler for a request about some nodes.
func (fs *dispatcher) of(nodes ...uint64) fuse.RawFileSystem {
	for _, node := range nodes {
		if control.Has(ids.Inode(node)) {
			return fs.control
		}
	}
	return fs.fileSystem
}

// in returns the handler for a request about a name in a directory.
func (fs *dispatcher) in(parent uint64, name string) fuse.RawFileSystem {
	if parent == namespace.RootIno && name == control.Name {
		return fs.control
	}
	return fs.of(parent)
}

// noted records the inode of an answer as known to the kernel.
func (fs *dispatcher) noted(entry *fuse.EntryOut, code fuse.Status) fuse.Status {
	if code.Ok() && entry.NodeId != 0 {
		fs.known.Told(ids.Inode(entry.NodeId))
	}
	return code
}

func (fs *dispatcher) Lookup(i <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if code := fs.refuseRootControl(i, h, namespace.MaySearch); !code.Ok() {
		return code
	}
	return fs.noted(out, fs.in(h.NodeId, name).Lookup(i, h, name, out))
}

func (fs *dispatcher) Forget(node, lookups uint64) {
	fs.known.Forgot(ids.Inode(node), lookups)
	fs.of(node).Forget(node, lookups)
}

func (fs *dispatcher) GetAttr(i <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return fs.of(in.NodeId).GetAttr(i, in, out)
}

func (fs *dispatcher) Statx(i <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	return fs.of(in.NodeId).Statx(i, in, out)
}

func (fs *dispatcher) SetAttr(i <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return fs.of(in.NodeId).SetAttr(i, in, out)
}

func (fs *dispatcher) Access(i <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	return fs.of(in.NodeId).Access(i, in)
}

func (fs *dispatcher) Readlink(i <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	return fs.of(h.NodeId).Readlink(i, h)
}

func (fs *dispatcher) Mknod(i <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return fs.noted(out, fs.in(in.NodeId, name).Mknod(i, in, name, out))
}

func (fs *dispatcher) Mkdir(i <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return fs.noted(out, fs.in(in.NodeId, name).Mkdir(i, in, name, out))
}

func (fs *dispatcher) Symlink(
	i <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut,
) fuse.Status {
	return fs.noted(out, fs.in(h.NodeId, name).Symlink(i, h, target, name, out))
}

func (fs *dispatcher) Link(i <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	if control.Has(ids.Inode(in.Oldnodeid)) {
		return fs.control.Link(i, in, name, out)
	}
	return fs.noted(out, fs.in(in.NodeId, name).Link(i, in, name, out))
}

func (fs *dispatcher) Rename(i <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	if to := fs.in(in.Newdir, newName); to == fs.control {
		return to.Rename(i, in, oldName, newName)
	}
	return fs.in(in.NodeId, oldName).Rename(i, in, oldName, newName)
}

func (fs *dispatcher) Unlink(i <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return fs.in(h.NodeId, name).Unlink(i, h, name)
}

func (fs *dispatcher) Rmdir(i <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return fs.in(h.NodeId, name).Rmdir(i, h, name)
}

func (fs *dispatcher) Create(i <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return fs.noted(&out.EntryOut, fs.in(in.NodeId, name).Create(i, in, name, out))
}

func (fs *dispatcher) Tmpfile(i <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	return fs.of(in.NodeId).Tmpfile(i, in, out)
}

func (fs *dispatcher) Open(i <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if code := fs.refuseRootControl(i, &in.InHeader, fuseattr.NeededToOpen(in.Flags)); !code.Ok() {
		return code
	}
	return fs.of(in.NodeId).Open(i, in, out)
}

func (fs *dispatcher) Read(i <-chan struct{}, in *fuse.ReadIn, buffer []byte) (fuse.ReadResult, fuse.Status) {
	return fs.of(in.NodeId).Read(i, in, buffer)
}

func (fs *dispatcher) Write(i <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	return fs.of(in.NodeId).Write(i, in, data)
}

func (fs *dispatcher) Fallocate(i <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	return fs.of(in.NodeId).Fallocate(i, in)
}

func (fs *dispatcher) CopyFileRange(i <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return fs.of(in.NodeId, in.NodeIdOut).CopyFileRange(i, in)
}

func (fs *dispatcher) Lseek(i <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	return fs.of(in.NodeId).Lseek(i, in, out)
}

func (fs *dispatcher) Ioctl(
	i <-chan struct{}, in *fuse.IoctlIn, data []byte, out *fuse.IoctlOut, buffer []byte,
) fuse.Status {
	return fs.of(in.NodeId).Ioctl(i, in, data, out, buffer)
}

func (fs *dispatcher) Release(i <-chan struct{}, in *fuse.ReleaseIn) {
	fs.of(in.NodeId).Release(i, in)
}

func (fs *dispatcher) Flush(i <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	return fs.of(in.NodeId).Flush(i, in)
}

func (fs *dispatcher) Fsync(i <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return fs.of(in.NodeId).Fsync(i, in)
}

func (fs *dispatcher) OpenDir(i <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if code := fs.refuseRootControl(i, &in.InHeader, namespace.MayRead); !code.Ok() {
		return code
	}
	return fs.of(in.NodeId).OpenDir(i, in, out)
}

func (fs *dispatcher) ReadDir(i <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return fs.of(in.NodeId).ReadDir(i, in, out)
}

func (fs *dispatcher) ReleaseDir(in *fuse.ReleaseIn) { fs.of(in.NodeId).ReleaseDir(in) }

func (fs *dispatcher) FsyncDir(i <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return fs.of(in.NodeId).FsyncDir(i, in)
}

func (fs *dispatcher) GetXAttr(i <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	return fs.of(h.NodeId).GetXAttr(i, h, name, dest)
}

func (fs *dispatcher) ListXAttr(i <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	return fs.of(h.NodeId).ListXAttr(i, h, dest)
}

func (fs *dispatcher) SetXAttr(i <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	return fs.of(in.NodeId).SetXAttr(i, in, name, value)
}

func (fs *dispatcher) RemoveXAttr(i <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return fs.of(h.NodeId).RemoveXAttr(i, h, name)
}

func (fs *dispatcher) GetLk(i <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	return fs.of(in.NodeId).GetLk(i, in, out)
}

func (fs *dispatcher) SetLk(i <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return fs.of(in.NodeId).SetLk(i, in)
}

func (fs *dispatcher) SetLkw(i <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return fs.of(in.NodeId).SetLkw(i, in)
}

// refuseRootControl is refuseRoot for the control directory. A file there has the permissions of its subject.
func (fs *dispatcher) refuseRootControl(interrupted <-chan struct{}, header *fuse.InHeader, need uint32) fuse.Status {
	if !control.Has(ids.Inode(header.NodeId)) {
		return fuse.OK
	}
	if isNobody, errno := fs.isNobody(interrupted, header); !isNobody || errno != 0 {
		return fuseattr.Status(errno)
	}
	var out fuse.AttrOut
	code := fs.control.GetAttr(interrupted, &fuse.GetAttrIn{InHeader: *header}, &out)
	if code.Ok() && !nobodyMay(&storepb.Attr{Mode: out.Mode, Uid: out.Uid, Gid: out.Gid}, need) {
		code = fuse.EACCES
	}
	return code
}

const opRead = 15 // FUSE_READ

// mayWait reports whether a request has no time limit: for a lock, or for later events in the control
// directory.
func (fs *dispatcher) mayWait(header *fuse.InHeader) bool {
	return header.Opcode == serve.OpSetLkw || header.Opcode == opRead && fs.control.MayWait(ids.Inode(header.NodeId))
}
