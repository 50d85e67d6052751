// Package fusefs makes a directory out of the replicated namespace: it turns the kernel's FUSE requests
// into operations, hands them to an [Operator] and turns the results into the kernel's answers. It is
// the only package that knows FUSE. Node ids are inode numbers, so they are the same on every host.
//
// # Semantics
//
// A call that changes something returns once a majority has it. A call that reads asks the cluster, so
// it sees everything that had returned, on any host, when it started. Fsync, fsync of a directory and
// close have nothing left to do.
//
// A file's content is changed as a whole, by compare-and-set against the version this mount saw last,
// and worked out anew when somebody else was faster: appends from several hosts lose nothing. Reading
// never changes the access time. A write by an ordinary user does not clear set-user-ID bits; the mount
// is nosuid.
//
// A file that this mount removed while a program has it open here is pinned and stays usable until the
// last handle closes. One that was removed or replaced from elsewhere answers a write with ESTALE.
//
// # Errors
//
// [Errno] is the one table from the namespace's outcomes to error numbers. An operation without an
// outcome is ETIMEDOUT if its time was up and EIO otherwise, with the reason in the log. An operation
// on an inode that is gone answers ESTALE, not ENOENT: for a path the VFS then looks the name up again,
// so that reading a name which is replaced all the time never says that there is none; only the owner of
// an open handle gets to see it.
//
// # Caching
//
// There is none: names, attributes and the lack of a name are valid for no time at all, and files are
// opened for direct I/O. Shared writable mappings fail with ENODEV for that reason. What the mount itself
// keeps of an open file's content spares sending it again while its version stays the same; every read
// still asks. After an append the descriptor's own offset (lseek(fd, 0, SEEK_CUR)) is computed by the
// kernel from the size it saw last, and may be short of the end.
//
// # Locks
//
// flock and fcntl locks are not forwarded: the kernel keeps them, between the processes of one host.
//
// # Interrupts
//
// Signals interrupt nothing. A creation that was given up half way and restarted by the kernel would
// find its own file and take it for somebody else's, so a call runs until the Operator has an outcome or
// its time is up. Only a caller that was killed while it waited is told nothing any more: what it was
// creating is taken back.
//
// # The end of the process
//
// A creation must not outlive a call that failed, also when this process is killed while it answers. The
// Operator keeps the answer where another process finds it, and that one hands it over ([Finish]).
//
// # Deadlocks
//
// The process that serves a mount must never touch a file below it: the call would wait for the process
// itself. Notifications to the kernel must never be sent from a handler or under a lock: the kernel may
// hold, for the very request that is being handled, the inode lock which the notification waits for.
package fusefs
