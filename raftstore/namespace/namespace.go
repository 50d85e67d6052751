package namespace

import "syscall"

// Namespace is the replicated state machine. It is not safe for concurrent use.
type Namespace struct{ keeper }

// New makes an empty tree: a root directory that every user may write to.
func New() *Namespace {
	ns := empty()
	ns.tree.putInode(&inode{ino: RootIno, mode: rootMode, nlink: 2, parent: RootIno})
	return ns
}

func empty() *Namespace {
	ns := new(Namespace)
	ns.tables = emptyTables()
	return ns
}

// rootMode lets every user make locks and only their owners remove them, as in /run/lock.
const rootMode = syscall.S_IFDIR | 0o1777
