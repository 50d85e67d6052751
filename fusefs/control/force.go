package control

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// forceNode is a real inode below force, where removals ignore the policies that guard names. It has the real
// attributes, so the kernel requires the same permissions for a removal.
type forceNode struct {
	ino ids.Inode
}

func (n forceNode) attr(s *source) (*storepb.Attr, syscall.Errno) {
	attr, errno := s.attr(n.ino)
	return inForce(attr), errno
}

func inForce(attr *storepb.Attr) *storepb.Attr {
	shown := likeReal(attr, attr.GetMode(), attr.GetNlink())
	shown.Size = attr.GetSize()
	return shown
}

func (n forceNode) lookup(s *source, name string) (node, *storepb.Attr, syscall.Errno) {
	attr, errno := s.lookup(n.ino, name)
	return forceNode{ids.Inode(attr.GetIno())}, inForce(attr), errno
}

func (n forceNode) list(s *source, after uint64, wanted uint32) ([]fuse.DirEntry, syscall.Errno) {
	return s.list(n.ino, after, wanted)
}

func (n forceNode) target(s *source) ([]byte, fuse.Status) {
	result, errno := s.query(&storepb.Query{Query: &storepb.Query_Read{Read: &storepb.Read{Ino: uint64(n.ino)}}})
	return result.GetContent(), fuseattr.Status(fuseattr.OfInode(errno))
}

// remove removes the real name, despite the caller's observations.
func (n forceNode) remove(s *source, caller *storepb.Caller, name string, directory bool) syscall.Errno {
	return s.tree.RemoveForced(caller, n.ino, name, directory)
}
