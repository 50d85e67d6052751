package control

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// rootEntries are the entries of the control directory.
var rootEntries = []struct {
	name string
	node node
	kind uint32
}{
	{"status", statusFile{}, syscall.S_IFREG},
	{string(plainLocks), plainLocks, syscall.S_IFREG},
	{string(jsonLocks), jsonLocks, syscall.S_IFREG},
	{string(newEvents), newEvents, syscall.S_IFREG},
	{string(oldEvents), oldEvents, syscall.S_IFREG},
	{changesName, changesFile{}, syscall.S_IFREG},
	{"why", mirrorDir{whyView, namespace.RootIno}, syscall.S_IFDIR},
	{"kv", mirrorDir{kvView, namespace.RootIno}, syscall.S_IFDIR},
	{"wait", mirrorDir{waitView, namespace.RootIno}, syscall.S_IFDIR},
	{"force", forceNode{namespace.RootIno}, syscall.S_IFDIR},
}

// root is the control directory itself.
type root struct{}

func (root) attr(s *source) (*storepb.Attr, syscall.Errno) {
	return s.fixed(rootMode), 0
}

func (root) lookup(s *source, name string) (node, *storepb.Attr, syscall.Errno) {
	for _, entry := range rootEntries {
		if entry.name == name {
			attr, errno := entry.node.attr(s)
			return entry.node, attr, errno
		}
	}
	return nil, nil, syscall.ENOENT
}

func (root) list(_ *source, after uint64, _ uint32) ([]fuse.DirEntry, syscall.Errno) {
	all := []fuse.DirEntry{{Name: ".", Mode: syscall.S_IFDIR, Off: 1}, {Name: "..", Mode: syscall.S_IFDIR, Off: 2}}
	for _, entry := range rootEntries {
		all = append(all, fuse.DirEntry{Name: entry.name, Mode: entry.kind, Off: uint64(len(all)) + 1})
	}
	return all[min(after, uint64(len(all))):], 0
}
