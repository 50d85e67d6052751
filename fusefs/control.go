package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/kernel"
	"lockfs/raftstore/storepb"
)

var _ fuse.RawFileSystem = (*control)(nil)

// control is the control directory. All of it is worked out when it is asked for. Its requests are not
// reported to the Observer: a reader of events may wait for hours.
type control struct {
	fuse.RawFileSystem // what is never handed on to it

	files *fileSystem
	began int64 // cluster time at which the mount was made
	nodes *nodeTable
	open  *kernel.Handles[controlHandle]
}

func newControl(files *fileSystem) *control {
	c := &control{
		RawFileSystem: files.RawFileSystem,
		files:         files,
		began:         files.ops.Status().GetClusterTime(),
		nodes:         newNodeTable(),
		open:          kernel.NewHandles[controlHandle](),
	}
	// Counted once more than the kernel knows of, so that they keep their numbers.
	c.nodes.use(controlRoot{})
	for _, entry := range controlEntries {
		c.nodes.use(entry.node)
	}
	return c
}

// fixed are the attributes of what is there from the mount on, and is everybody's to read.
func (c *control) fixed(mode uint32) *storepb.Attr {
	return &storepb.Attr{Mode: mode, Nlink: 1, Atime: c.began, Mtime: c.began, Ctime: c.began, Btime: c.began}
}

// Lookup is also asked for the control directory itself.
func (c *control) Lookup(_ <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	var node controlNode = controlRoot{}
	attr := c.fixed(controlRootMode)
	if isControl(header.NodeId) {
		dir, isDir := c.nodes.get(header.NodeId).(controlDir)
		if !isDir {
			return kernel.Status(syscall.ESTALE)
		}
		var errno syscall.Errno
		if node, attr, errno = dir.lookup(c, name); errno != 0 {
			return kernel.Status(errno)
		}
		if in, isForce := dir.(forceNode); isForce {
			c.files.judgements.resolve(header.Pid, in.ino, name, node.(forceNode).ino)
		}
	}
	attr.Ino = c.nodes.use(node)
	kernel.FillEntry(out, attr)
	return fuse.OK
}

func (c *control) Forget(node, lookups uint64) { c.nodes.forget(node, lookups) }

func (c *control) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	attr, errno := c.attr(in.NodeId)
	if errno == 0 {
		kernel.FillAttr(&out.Attr, attr)
	}
	return kernel.Status(errno)
}

func (c *control) Statx(_ <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	attr, errno := c.attr(in.NodeId)
	if errno == 0 {
		kernel.FillStatx(&out.Statx, attr)
	}
	return kernel.Status(errno)
}

func (c *control) attr(id uint64) (*storepb.Attr, syscall.Errno) {
	node := c.nodes.get(id)
	if node == nil {
		return nil, syscall.ESTALE
	}
	attr, errno := node.attr(c)
	if errno != 0 {
		return nil, kernel.OfInode(errno)
	}
	attr.Ino = id
	return attr, 0
}

// Open is for reading only.
func (c *control) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	file, isFile := c.nodes.get(in.NodeId).(controlFile)
	if !isFile || in.Flags&syscall.O_ACCMODE != syscall.O_RDONLY || in.Flags&syscall.O_TRUNC != 0 {
		return fuse.EPERM
	}
	handle, errno := file.open(c, in)
	if errno != 0 {
		return kernel.Status(kernel.OfInode(errno))
	}
	out.Fh, out.OpenFlags = c.open.Add(handle), handle.flags()
	return fuse.OK
}

func (c *control) Read(interrupted <-chan struct{}, in *fuse.ReadIn, _ []byte) (fuse.ReadResult, fuse.Status) {
	handle, found := c.open.Get(in.Fh)
	if !found {
		return nil, fuse.EBADF
	}
	data, errno := handle.read(interrupted, in)
	if errno != 0 {
		return nil, kernel.Status(errno)
	}
	return fuse.ReadResultData(data), fuse.OK
}

func (c *control) Release(_ <-chan struct{}, in *fuse.ReleaseIn) { c.open.Remove(in.Fh) }

// OpenDir needs no handle: a listing goes on by the offsets of its entries alone.
func (c *control) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return fuse.OK }

func (c *control) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	dir, isDir := c.nodes.get(in.NodeId).(controlDir)
	if !isDir {
		return kernel.Status(syscall.ESTALE)
	}
	entries, errno := dir.list(c, in.Offset, in.Size/smallestEntry+1)
	for _, entry := range entries {
		if !out.AddDirEntry(entry) {
			break
		}
	}
	return kernel.Status(errno)
}

func (c *control) ReleaseDir(*fuse.ReleaseIn) {}

// Readlink is of a symbolic link below force.
func (c *control) Readlink(_ <-chan struct{}, header *fuse.InHeader) ([]byte, fuse.Status) {
	node, isForce := c.nodes.get(header.NodeId).(forceNode)
	if !isForce {
		return nil, fuse.EINVAL
	}
	return node.target(c)
}

func (c *control) Unlink(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return c.remove(header, name, false)
}

func (c *control) Rmdir(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return c.remove(header, name, true)
}

func (c *control) remove(header *fuse.InHeader, name string, directory bool) fuse.Status {
	dir, isForce := c.nodes.get(header.NodeId).(forceNode)
	if !isForce {
		return fuse.EPERM
	}
	return kernel.Status(dir.remove(c, kernel.CallerOf(header), name, directory))
}
