// Package control is the directory .lockfs in the root of a mount, that no listing shows. Nothing in it can be changed (EPERM):
//
//	status      what the mount knows of itself: host, session, leader, clock_offset, cluster_time
//	locks       a line for each lock, not for data: state format token holder host pid age path
//	locks.jsonl the same and their advisory locks, in lines of JSON
//	events      the audit trail as lines of JSON, from the opening on; a read waits for the next event
//	history     the events that are kept, up to the opening
//	changes     a read waits until the cluster has changed since the last read, for programs that list locks again then
//	why/PATH    everything that is known of a lock, for people
//	kv/PATH     a lock of any format, as lines key=value that a reader of semaphore files understands
//	wait/PATH   a read returns when the lock is free or stale, and says which; there is one for every name
//	force/PATH  the real tree, where removing a name removes the real one whatever its guard says
//
// why, kv, wait and force ask for the permissions that the real tree asks for, on all the way. In why, kv and wait, a
// directory without entries is a file: it is the lock that mkdir(1) took. A directory with entries is told of by the name .lockfs in
// it, unless a real name hides that. locks and events tell root of everything, and anybody else
// of what he could reach by its path and stat; of what he could not read, no more than stat would, and that it is a lock. That is
// decided by user and groups of the one who opens them, with the permissions of the directories as they are then. Of an event
// the file's permissions count as they were; if its directory is gone, or elsewhere, it is for root and for who did it. A
// capability counts for nothing here, only that somebody is root, as the mount sees it.
//
// locks, locks.jsonl, events and history are made as they are read: an open file needs memory for one line, and of the locks a reader gets
// each as it was at one of its reads. The other files tell what was so when they were opened. The kernel keeps nothing, and all sizes are 0, as in
// /proc. Names and contents that are not plain text are shown as Go string literals, so that
// they cannot pretend to be lines of their own.
//
// It is told of the cluster and of the real tree by what it declares itself ([Cluster], [Tree]), and knows no mount.
package control

// Name is that of the directory.
const Name = ".lockfs"
