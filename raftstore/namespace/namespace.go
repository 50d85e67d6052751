package namespace

import "syscall"

// Namespace is the replicated state machine: it does commands. It is not safe for concurrent use.
//
// Beneath it lie, each knowing only those below: a keeper changes names, with all that follows of it; a warden refuses what must not be
// done to a lock; an announcer tells of what happens; a judge says what is a lock, whose, and whether it is stale; and the tables
// hold the state.
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
