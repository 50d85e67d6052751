package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

const (
	controlRootMode = syscall.S_IFDIR | 0o555
	controlFileMode = syscall.S_IFREG | 0o444
)

// controlEntries is what is in the control directory.
var controlEntries = []struct {
	name string
	node controlNode
	kind uint32
}{
	{"status", statusFile{}, syscall.S_IFREG},
	{string(plainLocks), plainLocks, syscall.S_IFREG},
	{string(jsonLocks), jsonLocks, syscall.S_IFREG},
	{string(newEvents), newEvents, syscall.S_IFREG},
	{string(oldEvents), oldEvents, syscall.S_IFREG},
	{"why", mirrorDir{whyView, namespace.RootIno}, syscall.S_IFDIR},
	{"kv", mirrorDir{kvView, namespace.RootIno}, syscall.S_IFDIR},
	{"wait", mirrorDir{waitView, namespace.RootIno}, syscall.S_IFDIR},
	{"force", forceNode{namespace.RootIno}, syscall.S_IFDIR},
}

// controlRoot is the control directory itself.
type controlRoot struct{}

func (controlRoot) attr(c *control) (*storepb.Attr, syscall.Errno) {
	return c.fixed(controlRootMode), 0
}

func (controlRoot) lookup(c *control, name string) (controlNode, *storepb.Attr, syscall.Errno) {
	for _, entry := range controlEntries {
		if entry.name == name {
			attr, errno := entry.node.attr(c)
			return entry.node, attr, errno
		}
	}
	return nil, nil, syscall.ENOENT
}

func (controlRoot) list(_ *control, after uint64, _ uint32) ([]fuse.DirEntry, syscall.Errno) {
	all := []fuse.DirEntry{{Name: ".", Mode: syscall.S_IFDIR, Off: 1}, {Name: "..", Mode: syscall.S_IFDIR, Off: 2}}
	for _, entry := range controlEntries {
		all = append(all, fuse.DirEntry{Name: entry.name, Mode: entry.kind, Off: uint64(len(all)) + 1})
	}
	return all[min(after, uint64(len(all))):], 0
}
