package fusefs

import (
	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/namespace"
)

// controlName is where the root of a mount has the control directory. No listing shows it.
const controlName = ".lockfs"

var _ fuse.RawFileSystem = (*withControl)(nil)

// withControl is what the kernel gets to see: the file system, with the control directory in its root. It
// only hands each request on to the one of the two that it is for. A request that is about both of them is
// for the control directory, which refuses it. In all of them i is closed when the caller gets a signal.
type withControl struct {
	*fileSystem
	control *control
}

func newWithControl(fs *fileSystem) *withControl {
	return &withControl{fileSystem: fs, control: newControl(fs)}
}

func isControl(node uint64) bool { return node&controlBit != 0 }

// of answers whom a request about some nodes is for.
func (fs *withControl) of(nodes ...uint64) fuse.RawFileSystem {
	for _, node := range nodes {
		if isControl(node) {
			return fs.control
		}
	}
	return fs.fileSystem
}

// in answers whom a request about a name in a directory is for.
func (fs *withControl) in(parent uint64, name string) fuse.RawFileSystem {
	if parent == namespace.RootIno && name == controlName {
		return fs.control
	}
	return fs.of(parent)
}

func (fs *withControl) Lookup(i <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return fs.in(h.NodeId, name).Lookup(i, h, name, out)
}

func (fs *withControl) Forget(node, lookups uint64) { fs.of(node).Forget(node, lookups) }

func (fs *withControl) GetAttr(i <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return fs.of(in.NodeId).GetAttr(i, in, out)
}

func (fs *withControl) Statx(i <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	return fs.of(in.NodeId).Statx(i, in, out)
}

func (fs *withControl) SetAttr(i <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return fs.of(in.NodeId).SetAttr(i, in, out)
}

func (fs *withControl) Access(i <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	return fs.of(in.NodeId).Access(i, in)
}

func (fs *withControl) Readlink(i <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	return fs.of(h.NodeId).Readlink(i, h)
}

func (fs *withControl) Mknod(i <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return fs.in(in.NodeId, name).Mknod(i, in, name, out)
}

func (fs *withControl) Mkdir(i <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return fs.in(in.NodeId, name).Mkdir(i, in, name, out)
}

func (fs *withControl) Symlink(
	i <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut,
) fuse.Status {
	return fs.in(h.NodeId, name).Symlink(i, h, target, name, out)
}

func (fs *withControl) Link(i <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	if isControl(in.Oldnodeid) {
		return fs.control.Link(i, in, name, out)
	}
	return fs.in(in.NodeId, name).Link(i, in, name, out)
}

func (fs *withControl) Rename(i <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	if to := fs.in(in.Newdir, newName); to == fs.control {
		return to.Rename(i, in, oldName, newName)
	}
	return fs.in(in.NodeId, oldName).Rename(i, in, oldName, newName)
}

func (fs *withControl) Unlink(i <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return fs.in(h.NodeId, name).Unlink(i, h, name)
}

func (fs *withControl) Rmdir(i <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return fs.in(h.NodeId, name).Rmdir(i, h, name)
}

func (fs *withControl) Create(i <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return fs.in(in.NodeId, name).Create(i, in, name, out)
}

func (fs *withControl) Tmpfile(i <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	return fs.of(in.NodeId).Tmpfile(i, in, out)
}

func (fs *withControl) Open(i <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return fs.of(in.NodeId).Open(i, in, out)
}

func (fs *withControl) Read(i <-chan struct{}, in *fuse.ReadIn, buffer []byte) (fuse.ReadResult, fuse.Status) {
	return fs.of(in.NodeId).Read(i, in, buffer)
}

func (fs *withControl) Write(i <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	return fs.of(in.NodeId).Write(i, in, data)
}

func (fs *withControl) Fallocate(i <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	return fs.of(in.NodeId).Fallocate(i, in)
}

func (fs *withControl) CopyFileRange(i <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return fs.of(in.NodeId, in.NodeIdOut).CopyFileRange(i, in)
}

func (fs *withControl) Lseek(i <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	return fs.of(in.NodeId).Lseek(i, in, out)
}

func (fs *withControl) Ioctl(
	i <-chan struct{}, in *fuse.IoctlIn, data []byte, out *fuse.IoctlOut, buffer []byte,
) fuse.Status {
	return fs.of(in.NodeId).Ioctl(i, in, data, out, buffer)
}

func (fs *withControl) Release(i <-chan struct{}, in *fuse.ReleaseIn) {
	fs.of(in.NodeId).Release(i, in)
}

func (fs *withControl) Flush(i <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	return fs.of(in.NodeId).Flush(i, in)
}

func (fs *withControl) Fsync(i <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return fs.of(in.NodeId).Fsync(i, in)
}

func (fs *withControl) OpenDir(i <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return fs.of(in.NodeId).OpenDir(i, in, out)
}

func (fs *withControl) ReadDir(i <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return fs.of(in.NodeId).ReadDir(i, in, out)
}

func (fs *withControl) ReleaseDir(in *fuse.ReleaseIn) { fs.of(in.NodeId).ReleaseDir(in) }

func (fs *withControl) FsyncDir(i <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return fs.of(in.NodeId).FsyncDir(i, in)
}

func (fs *withControl) GetXAttr(i <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	return fs.of(h.NodeId).GetXAttr(i, h, name, dest)
}

func (fs *withControl) ListXAttr(i <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	return fs.of(h.NodeId).ListXAttr(i, h, dest)
}

func (fs *withControl) SetXAttr(i <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	return fs.of(in.NodeId).SetXAttr(i, in, name, value)
}

func (fs *withControl) RemoveXAttr(i <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return fs.of(h.NodeId).RemoveXAttr(i, h, name)
}

func (fs *withControl) GetLk(i <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	return fs.of(in.NodeId).GetLk(i, in, out)
}

func (fs *withControl) SetLk(i <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return fs.of(in.NodeId).SetLk(i, in)
}

func (fs *withControl) SetLkw(i <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return fs.of(in.NodeId).SetLkw(i, in)
}
