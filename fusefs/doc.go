// Package fusefs makes a directory out of the replicated namespace: it turns the kernel's FUSE requests
// into operations, hands them to an [Operator] and turns the results into the kernel's answers. It is
// the only package that knows FUSE. Node ids are inode numbers, so they are the same on every host.
//
// The requests are answered here, by a handler for each: [Mount] shows them to the kernel through the dispatcher, which has the
// control directory stand beside the tree. What can be thought of by itself is a package below:
//
//	serve        the connection to the kernel: reading requests, and stopping in between
//	mountpoint   mounts as the kernel has them: finding, cleaning up and ending them
//	kernel       what answers are made of: error numbers, attributes, handles, who asks and what he may
//	thread       what is known of the threads that ask: killed, in which system call, what they were told in it
//	observation  which lock a process saw last under a name
//	filelock     who has flock and fcntl locks of a file, and what of them is being released
//	answer       answers that another process can give in place of one that was killed
//	estate       what such a process leaves to the one that goes on with its mount
//	watch        delete-self for files that are removed on other hosts
//	control      the directory .lockfs
//
// # Semantics
//
// A call that changes something returns once a majority has it. A call that reads asks the cluster, so
// it sees everything that had returned, on any host, when it started. Fsync, fsync of a directory and
// close have nothing left to do.
//
// A file's content is changed as a whole, by compare-and-set against the version this mount saw last,
// and worked out anew when somebody else was faster: appends from several hosts lose nothing. Reading
// never changes the access time.
//
// A file that lost its last name stays usable until the last handle closes, on whichever host it was removed: the mount pins it
// in the cluster. All mounts that have it open share its content. The mount learns of removals elsewhere from a stream that may lag,
// and from each answer about the file; the cluster keeps the file for 30 s in any case. A mount that was cut off for longer, or
// whose session has ended, may answer ESTALE.
//
// If the last name was a lock, a write on another host than the one that removed it returns ESTALE: the holder learns so that it
// lost its lock. This is what ESTALE is for. A call by path never returns it for a file that was removed: the kernel walks the path
// again after the first ESTALE, and a second one in the same call becomes ENOENT, or EACCES for a file that another user made.
//
// # Errors
//
// [kernel.Errno] is the one table from the namespace's outcomes to error numbers. An operation without an
// outcome is ETIMEDOUT if its time was up and EIO otherwise, with the reason in the log. An operation
// on an inode that is gone answers ESTALE, not ENOENT: for a path the VFS then looks the name up again,
// so that reading a name which is replaced all the time never says that there is none; only the owner of
// an open handle gets to see it.
//
// # Caching
//
// There is none in the kernel: names, attributes and the lack of a name are valid for no time at all, and files are
// opened for direct I/O. Shared mappings fail with ENODEV for that reason. What the mount itself
// keeps of an open file's content spares sending it again while its version stays the same; every read
// still asks the [Operator], which may know that nothing has changed. After an append the descriptor's own offset (lseek(fd, 0, SEEK_CUR)) is computed by the
// kernel from the size it saw last, and may be short of the end.
//
// # Locks
//
// flock and fcntl locks are taken in the cluster, under the owner that the kernel names and the mount's
// session. A close drops what its process has of the file (FLUSH), the last close of an open file
// description its flock and what it has locked as itself (RELEASE). close(2) returns before the kernel tells
// of a RELEASE. So a request that must not wait and conflicts with a lock whose descriptor was closed in the last 50 ms waits for the
// release, and is then made again under another number. If the holder is on another mount, the leader asks that mount
// ([Operator].AwaitRelease). One request waits so for each close, for 50 ms in all; no answer is a refusal.
//
// A deadlock is found only among locks of processes; the request does not tell these from locks of open file
// descriptions, but the system call does which the caller is in. Locks that were taken in a session which
// has ended may be somebody else's now: descriptors that they were taken through answer EIO from then on.
//
// A request that times out may have been done, so all that its owner has of the file is released, as soon as the cluster can be
// told. Where that is more than the request was about (a lock was to be converted, or a part of it released), the request
// answers EIO, and so do the owner's descriptors from then on, before the cluster is told, and nobody else gets the locks
// before the lock delay is over. Otherwise it answers ETIMEDOUT, and the descriptor is as good as before.
//
// flock on a directory never reaches this package: it works between the processes of one host.
//
// # What a process saw
//
// The mount remembers which lock a process saw last under a name, and a removal, a replacement and a truncation carry that to the
// cluster, which refuses them if it is not what is there any more: see package observation.
//
// The kernel opens by inode number. By which name, follows from what the same thread looked up just before.
//
// # The control directory
//
// The root of a mount has a directory .lockfs that no listing shows and that tells of locks: see package control.
//
// Extended attributes user.lockfs.* describe a lock to programs that may read it; data has none. They are answered by name and not
// listed; setting and removing them succeeds without effect. Reading one, or a file of why or kv, is a look at the lock; asking for its
// size or listing locks is not.
//
// # Interrupts
//
// Signals interrupt nothing but a read that waits for an event. A creation that was given up half way and restarted by the kernel would
// find its own file and take it for somebody else's, so a call runs until the Operator has an outcome or
// its time is up. Only a caller that was killed while it waited is told nothing any more: what it was
// creating exclusively is taken back, and what it asked is not waited for, nor what it changed for longer than a second:
// others may wait behind it for a directory's lock.
//
// # The end of the process
//
// Programs may still have files open when it is told to end, also where the mount is not seen any more (umount -l) or is seen
// from another mount namespace only. The kernel tells whether that is so ([Mounted.InUse]); if it is, whoever says farewell to
// the cluster has to say so, because these programs may believe in what they have locked.
//
// An exclusive creation must not outlive a call that failed, also when this process is killed while it answers. The
// Operator keeps the answer where another process finds it, and that one hands it over ([answer.Finish]). Nor must it because of what the
// kernel asks after it in the same open(2): the attributes, with which the creation was answered, are told to that thread if nobody has
// newer ones, however late it asks, and by another process too. That is not so of callers whom this process cannot see, in a pid namespace
// beside or above its own.
//
// # Another process goes on
//
// [Mounted.HandOver] stops serving, and [TakeOver] goes on in another process, or another program in this one. Requests wait in the kernel
// meanwhile. Waits for locks go along as they are: their requests stay in the cluster's queues, and the next process waits for them. Reads
// that wait for an event are given back and begin anew. What is open, pinned and locked, and what processes saw, goes along, so that nobody is let off a guard; what
// is lost is what can be asked for again, and that a watched file was removed elsewhere during the pause (inotify).
// Nothing is handed over while a request does not end, or the cluster does not know of all that was closed.
//
// Should this process be killed, [TakeOver] goes on with what it has left ([Mounted.Estate]), once the kernel was told to ask again what
// it had asked. A request that changes something may have been done then, and is refused with EIO, as one of which nobody knows; the Operator
// settles it. Others are handled anew: a lock that its owner has already is taken a second time, and a request for a lock that waits is
// waited for again.
// A request that the kernel was just copying for the process, it gives up itself, with EIO, whatever it is about.
// What is not in the estate is taken to be more than it may be. So a lock may be released, or an inode let go, that nobody
// has, but what somebody has is not lost, and what nobody has does not stay.
//
// # Deadlocks
//
// The process that serves a mount must never touch a file below it: the call would wait for the process
// itself. Notifications to the kernel must never be sent from a handler or under a lock: the kernel may
// hold, for the very request that is being handled, the inode lock which the notification waits for.
//
// A notification that waits cannot be interrupted. Should the process end meanwhile it stays behind with that one thread, and
// with /dev/fuse open, so the request is never answered and the lock never free. Therefore a mount that is left in use is ended
// by hand before its process leaves ([Mounted.End]), and by another process if it did not get that far ([mountpoint.Connection]).
package fusefs
