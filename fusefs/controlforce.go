package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/kernel"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/storepb"
)

// forceNode is a real inode below force, where names can be removed whatever their guards say. Its
// attributes are the real ones, so that the kernel allows a removal here to whom it allows it there.
type forceNode struct {
	ino uint64
}

func (n forceNode) attr(c *control) (*storepb.Attr, syscall.Errno) {
	attr, errno := c.files.attr(thread.Request{}, n.ino)
	return inForce(attr), errno
}

func inForce(attr *storepb.Attr) *storepb.Attr {
	shown := likeReal(attr, attr.GetMode(), attr.GetNlink())
	shown.Size = attr.GetSize()
	return shown
}

func (n forceNode) lookup(c *control, name string) (controlNode, *storepb.Attr, syscall.Errno) {
	attr, errno := c.lookupReal(n.ino, name)
	return forceNode{attr.GetIno()}, inForce(attr), errno
}

func (n forceNode) list(c *control, after uint64, wanted uint32) ([]fuse.DirEntry, syscall.Errno) {
	return c.listReal(n.ino, after, wanted)
}

func (n forceNode) target(c *control) ([]byte, fuse.Status) {
	result, errno := c.files.query(thread.Request{}, &storepb.Query{Query: &storepb.Query_Read{Read: &storepb.Read{Ino: n.ino}}})
	return result.GetContent(), kernel.Status(kernel.OfInode(errno))
}

// remove takes away the real name, whatever the caller has seen of it.
func (n forceNode) remove(c *control, caller *storepb.Caller, name string, directory bool) syscall.Errno {
	at := place{caller: caller, parent: n.ino, name: []byte(name)}
	result, errno := c.files.mutate(nil, caller, &storepb.Op{Op: &storepb.Op_Unlink{
		Unlink: &storepb.Unlink{
			Parent: at.parent, Name: at.name, Directory: directory, Force: true, Judged: c.files.judgements.judgedAs(at),
		},
	}})
	if errno == 0 {
		c.files.removed(caller, result.GetRemovedIno(), 0)
	}
	return c.files.judgements.judge(caller, result, errno)
}
