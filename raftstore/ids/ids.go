// Package ids has a type for each kind of number that names something, so that none is taken for another. Messages have them all
// as uint64: they get their types where a message is read.
package ids

type (
	// Inode is the number of an inode, which no other one ever gets; 0: none.
	Inode uint64
	// Session is the id of a session; 0: the cluster itself.
	Session uint64
	// Sequence is the number of a command within its session, from 1.
	Sequence uint64
	// Token is a fencing token: the index of the command that gave a name its present holder.
	Token uint64
	// Owner is an owner of advisory locks within a session.
	Owner uint64
	// Index is the place of an entry in the log, from 1.
	Index uint64
	// Term is a term of raft's.
	Term uint64
	// Instance tells a process of a server from every other process that uses its identity; 0: it is not known.
	Instance uint64
)

// UnknownInode is no inode's number: whoever removes a name says by it that it is not known any more which inode the caller has found there.
const UnknownInode = ^Inode(0)
