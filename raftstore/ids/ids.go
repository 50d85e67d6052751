// Package ids has a type for each kind of identifying number, so the compiler finds mix-ups. Messages have
// them all as uint64; their readers convert them.
package ids

type (
	// Inode is the number of an inode, never reused; 0: none.
	Inode uint64
	// Session is the id of a session; 0: the cluster itself.
	Session uint64
	// Sequence is the number of a command within its session, from 1.
	Sequence uint64
	// Token is a fencing token: the index of the command that gave a name its present holder.
	Token uint64
	// Owner is an owner of advisory locks within a session.
	Owner uint64
	// Index is the index of an entry in the log, from 1.
	Index uint64
	// Term is a raft term.
	Term uint64
	// Instance distinguishes a process of a server from other processes with its identity; 0: unknown.
	Instance uint64
)

// UnknownInode is no inode's number. In a removal it says that the inode seen by the caller is no longer
// known.
const UnknownInode = ^Inode(0)
