// Package control is the directory .lockfs in the root of a mount, which no listing shows. Its files are
// read-only (EPERM):
//
//	status      the mount's own state: host, session, leader, clock_offset, cluster_time
//	locks       a line for each lock, not for data: state format token holder host pid age path
//	locks.jsonl the same with advisory locks, in lines of JSON
//	events      the audit trail as lines of JSON, from the opening on; a read waits for the next event
//	history     the stored events up to the opening
//	changes     a read waits for a change of the cluster, for programs that then list locks again
//	why/PATH    all facts of a lock, for people
//	kv/PATH     a lock of any format, as lines key=value for readers of semaphore files
//	wait/PATH   a read returns when the lock is free or stale, and says which; exists for every name
//	force/PATH  the real tree; a removal here removes the real name despite its guard
//
// why, kv, wait and force need the same permissions as the real tree, on the whole path. In why, kv and wait,
// a directory without entries is a file: a lock taken by mkdir(1). For a directory with entries, the name
// .lockfs in it is the file, unless a real name hides it.
//
// locks and events show root everything. Other users see the files which they could reach by path and stat.
// For files which they could not read, they see only the results of stat and the fact of a lock. The check
// uses the user and groups of the opener, with the present permissions of the directories. For an event, the
// file's permissions at its time count. If its directory is gone or moved, only root and the event's user see
// it. Capabilities do not count, only uid 0 as the mount sees it.
//
// Reads produce the lines of locks, locks.jsonl, events and history. An open file needs memory for one line,
// and each lock has its state at one of the reads. The other files have the state at their opening. The
// kernel caches nothing, and all sizes are 0, as in /proc. Names and contents other than plain text are Go
// string literals, so they cannot imitate lines.
//
// The package declares its own interfaces to the cluster and the real tree ([Cluster], [Tree]), and knows no
// mount.
package control

// Name is the name of the directory.
const Name = ".lockfs"
