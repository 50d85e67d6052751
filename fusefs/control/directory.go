package control

import (
	"log/slog"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/lookguard"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Directory is a control directory with a state that another process can continue from.
type Directory interface {
	fuse.RawFileSystem
	// MayWait reports whether a read of a node may wait for later events. A read of the lists does not wait
	// and needs more memory. It counts as a call; a user has fewer calls than waits.
	MayWait(id ids.Inode) bool
	// Save returns the state known to the kernel. The caller must stop all requests meanwhile.
	Save() (*Saved, error)
	// Restore is for a new directory, which the kernel has not used yet.
	Restore(*Saved) error
}

var _ Directory = (*directory)(nil)

// directory implements Directory. It computes all content on request. It does not report to the Observer: a
// reader of events may wait for hours.
type directory struct {
	fuse.RawFileSystem // for requests never sent to it

	source *source
	nodes  *nodeTable
	open   *fuseattr.Handles[handle]
	files  *openFiles
}

// New returns the control directory of a mount. Only lookups and removals below force reach the tree.
func New(cluster Cluster, tree Tree, observations *lookguard.Memory, budgets Budgets, logger *slog.Logger) Directory {
	return newDirectory(&source{
		cluster: cluster, tree: tree, observations: observations, logger: logger, began: cluster.Status().GetClusterTime(),
	}, budgets)
}

func newDirectory(from *source, budgets Budgets) *directory {
	from.lockStates, from.events = newLockStates(from.getLock), newEventFeeds(from.query, from.cluster.EventsAfter)
	c := &directory{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		source:        from,
		nodes:         newNodeTable(),
		open:          fuseattr.NewHandles[handle](),
		files:         newOpenFiles(budgets),
	}
	// One more use than by the kernel, so that they keep their numbers.
	for _, n := range fixedNodes() {
		c.nodes.use(n)
	}
	return c
}

// fixedNodes returns the nodes which always exist.
func fixedNodes() []node {
	nodes := []node{root{}}
	for _, entry := range rootEntries {
		nodes = append(nodes, entry.node)
	}
	return nodes
}

// Lookup also finds the control directory itself.
func (c *directory) Lookup(_ <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	var found node = root{}
	attr := c.source.fixed(rootMode)
	if Has(ids.Inode(header.NodeId)) {
		dir, isDir := c.nodes.get(ids.Inode(header.NodeId)).(dirNode)
		if !isDir {
			return fuseattr.Status(syscall.ESTALE)
		}
		var errno syscall.Errno
		if found, attr, errno = dir.lookup(c.source, name); errno != 0 {
			return fuseattr.Status(errno)
		}
		if in, isForce := dir.(forceNode); isForce {
			c.source.tree.LookedUp(header.Pid, in.ino, name, found.(forceNode).ino)
		}
	}
	attr.Ino = uint64(c.nodes.use(found))
	fuseattr.FillEntry(out, attr)
	return fuse.OK
}

func (c *directory) Forget(node, lookups uint64) { c.nodes.forget(ids.Inode(node), lookups) }

func (c *directory) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	attr, errno := c.attr(ids.Inode(in.NodeId))
	if errno == 0 {
		fuseattr.FillAttr(&out.Attr, attr)
	}
	return fuseattr.Status(errno)
}

func (c *directory) Statx(_ <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	attr, errno := c.attr(ids.Inode(in.NodeId))
	if errno == 0 {
		fuseattr.FillStatx(&out.Statx, attr)
	}
	return fuseattr.Status(errno)
}

func (c *directory) attr(id ids.Inode) (*storepb.Attr, syscall.Errno) {
	node := c.nodes.get(id)
	if node == nil {
		return nil, syscall.ESTALE
	}
	attr, errno := node.attr(c.source)
	if errno != 0 {
		return nil, fuseattr.OfInode(errno)
	}
	attr.Ino = uint64(id)
	return attr, 0
}

// Open is for reading only.
func (c *directory) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	file, isFile := c.nodes.get(ids.Inode(in.NodeId)).(fileNode)
	if !isFile || in.Flags&syscall.O_ACCMODE != syscall.O_RDONLY || in.Flags&syscall.O_TRUNC != 0 {
		return fuse.EPERM
	}
	handle, errno := file.open(c.source, in)
	if errno != 0 {
		return fuseattr.Status(fuseattr.OfInode(errno))
	}
	taken, err := c.files.take(&in.InHeader, handle)
	if err != nil {
		fuseattr.LogRefusal(c.source.logger, syscall.EMFILE, err.Error())
		return fuseattr.Status(syscall.EMFILE)
	}
	out.Fh, out.OpenFlags = c.open.Add(handle), handle.flags()
	c.files.opened(out.Fh, taken)
	return fuse.OK
}

func (c *directory) MayWait(id ids.Inode) bool {
	if !Has(id) {
		return false
	}
	switch file := c.nodes.get(id).(type) {
	case locksFile:
		return false
	case eventsFile:
		return file != oldEvents
	}
	return true
}

func (c *directory) Read(interrupted <-chan struct{}, in *fuse.ReadIn, _ []byte) (fuse.ReadResult, fuse.Status) {
	handle, found := c.open.Get(in.Fh)
	if !found {
		return nil, fuse.EIO // of a crashed process
	}
	data, errno := handle.read(interrupted, in)
	if errno != 0 {
		return nil, fuseattr.Status(errno)
	}
	return fuse.ReadResultData(data), fuse.OK
}

func (c *directory) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	c.open.Remove(in.Fh)
	c.files.closed(in.Fh)
}

// OpenDir needs no handle: a listing continues from the offsets of its entries.
func (c *directory) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return fuse.OK }

func (c *directory) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	dir, isDir := c.nodes.get(ids.Inode(in.NodeId)).(dirNode)
	if !isDir {
		return fuseattr.Status(syscall.ESTALE)
	}
	entries, errno := dir.list(c.source, in.Offset, in.Size/fuseattr.SmallestEntry+1)
	for _, entry := range entries {
		if !out.AddDirEntry(entry) {
			break
		}
	}
	return fuseattr.Status(errno)
}

func (c *directory) ReleaseDir(*fuse.ReleaseIn) {}

// Readlink is for symbolic links below force.
func (c *directory) Readlink(_ <-chan struct{}, header *fuse.InHeader) ([]byte, fuse.Status) {
	node, isForce := c.nodes.get(ids.Inode(header.NodeId)).(forceNode)
	if !isForce {
		return nil, fuse.EINVAL
	}
	return node.target(c.source)
}

func (c *directory) Unlink(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return c.remove(header, name, false)
}

func (c *directory) Rmdir(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return c.remove(header, name, true)
}

func (c *directory) remove(header *fuse.InHeader, name string, directory bool) fuse.Status {
	dir, isForce := c.nodes.get(ids.Inode(header.NodeId)).(forceNode)
	if !isForce {
		return fuse.EPERM
	}
	return fuseattr.Status(dir.remove(c.source, fuseattr.CallerOf(header), name, directory))
}
