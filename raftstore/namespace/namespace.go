package namespace

import (
	"syscall"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
)

// Namespace is the replicated state machine. It is not safe for concurrent use.
type Namespace struct {
	guard
	removed    []Removal // by the last command; not part of the state
	touchedOwn bool      // see Touched
}

// Removal is an inode that lost its last name.
type Removal struct {
	Session ids.Session // that removed it, so its kernel knows; 0: lockfs itself, or a removal by force
	Parent  ids.Inode
	Name    string
	Ino     ids.Inode
}

// New returns an empty tree: a root directory in which every user may create names.
func New() *Namespace {
	ns := empty(digest.New())
	ns.tree.below = make(map[ids.Inode]*subtree)
	ns.tree.putInode(&inode{ino: RootIno, mode: rootMode, nlink: 2, parent: RootIno})
	return ns
}

func empty(d *digest.Digest) *Namespace {
	ns := new(Namespace)
	ns.state = emptyState(d)
	return ns
}

// rootMode lets every user create locks and only their owners remove them, as in /run/lock.
const rootMode = syscall.S_IFDIR | 0o1777
