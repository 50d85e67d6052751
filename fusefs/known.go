package fusefs

import (
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// known counts how often the kernel was told of each inode, less what it has forgotten since. What it does not know, no program
// can watch, have open or stand in: the kernel forgets an inode when its last user has gone.
type known struct {
	mu      sync.Mutex
	lookups map[uint64]uint64 // by node; more than 0
}

func newKnown() *known { return &known{lookups: make(map[uint64]uint64)} }

func (k *known) told(node uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lookups[node]++
}

func (k *known) forgot(node, lookups uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if left := k.lookups[node]; left > lookups {
		k.lookups[node] = left - lookups
	} else {
		delete(k.lookups, node)
	}
}

func (k *known) knows(node uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lookups[node] > 0
}

// withKnown notes what a file system tells the kernel of, before the kernel gets to know.
type withKnown struct {
	fuse.RawFileSystem
	known *known
}

func (fs *withKnown) noted(entry *fuse.EntryOut, code fuse.Status) fuse.Status {
	if code.Ok() && entry.NodeId != 0 {
		fs.known.told(entry.NodeId)
	}
	return code
}

// Lookup is part of fuse.RawFileSystem.
func (fs *withKnown) Lookup(i <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return fs.noted(out, fs.RawFileSystem.Lookup(i, h, name, out))
}

// Mknod is part of fuse.RawFileSystem.
func (fs *withKnown) Mknod(i <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return fs.noted(out, fs.RawFileSystem.Mknod(i, in, name, out))
}

// Mkdir is part of fuse.RawFileSystem.
func (fs *withKnown) Mkdir(i <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return fs.noted(out, fs.RawFileSystem.Mkdir(i, in, name, out))
}

// Symlink is part of fuse.RawFileSystem.
func (fs *withKnown) Symlink(i <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return fs.noted(out, fs.RawFileSystem.Symlink(i, h, target, name, out))
}

// Link is part of fuse.RawFileSystem.
func (fs *withKnown) Link(i <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return fs.noted(out, fs.RawFileSystem.Link(i, in, name, out))
}

// Create is part of fuse.RawFileSystem.
func (fs *withKnown) Create(i <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return fs.noted(&out.EntryOut, fs.RawFileSystem.Create(i, in, name, out))
}

// Forget is part of fuse.RawFileSystem.
func (fs *withKnown) Forget(node, lookups uint64) {
	fs.known.forgot(node, lookups)
	fs.RawFileSystem.Forget(node, lookups)
}
