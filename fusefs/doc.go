// Package fusefs serves the replicated namespace as a FUSE mount. It converts requests of the kernel into
// operations, passes them to an [Operator], and converts the results into answers. Only this package and the
// packages below it know FUSE. Node ids are inode numbers, so they are equal on all hosts.
//
// This package has a handler for each request. [Mount] connects the handlers to the kernel through the
// dispatcher, which adds the control directory. The packages below have the independent parts:
//
//	serve        the connection to the kernel: reading requests, and stopping in between
//	mountpoint   mounts as the kernel has them: finding, cleaning up and ending them
//	fuseattr     parts of answers: error numbers, attributes, handles, callers and their permissions
//	thread       facts about calling threads: killed, current system call, answers given in it
//	lookguard    which lock a process saw last under a name
//	filelock     owners of flock and fcntl locks of a file, and releases in progress
//	orphanreply  replies for another process to give in place of a killed one
//	crashstate   the state of a mount after a crash of its process
//	inotify      delete-self for files that other hosts remove
//	control      the directory .lockfs
//
// # Semantics
//
// A call with a change returns once a majority has stored it. A call that reads asks the cluster. It sees
// every change whose call had returned, on any host, before the read started. Fsync, fsync of a directory and
// close have nothing left to do.
//
// A write changes the content of a file as a whole, by compare-and-set against the version seen last. After a
// conflict the mount computes the content again, so appends from several hosts lose nothing. Reading never
// changes the access time.
//
// A file without a name stays usable until its last handle closes, also if another host removed the name: the
// mount pins the file in the cluster. All mounts with open handles share its content. The mount learns of
// removals elsewhere from a stream, which may lag, and from each answer about the file. The cluster keeps the
// file for 30 s in any case. After a longer disconnection, or after the end of its session, a mount may
// return ESTALE.
//
// If the last name was a lock, a write on another host than the remover's returns ESTALE. This tells the
// holder of the loss. A call by path never returns ESTALE for a removed file: the kernel walks the path again
// after the first ESTALE. A second one in the same call becomes ENOENT, or EACCES for a file of another user.
//
// # Errors
//
// [kernel.Errno] is the one table from the namespace's result codes to error numbers. An operation without a
// result returns ETIMEDOUT at its time limit and EIO otherwise; the log has the reason. An operation on a
// missing inode returns ESTALE, not ENOENT: for a path, the VFS then looks the name up again. So readers of a
// name under constant replacement never get ENOENT; only the owner of an open handle sees ESTALE.
//
// # Caching
//
// The kernel caches nothing: names, attributes and missing names have a validity of zero, and files are open
// for direct I/O. Therefore shared mappings fail with ENODEV. The mount keeps the content of open files only
// to save the transfer of an unchanged version. Each read still asks the [Operator], which may already know
// that nothing has changed. After an append, the kernel computes the descriptor's own offset (lseek(fd, 0,
// SEEK_CUR)) from the last size it saw. The offset may be short of the end.
//
// # Locks
//
// The mount takes flock and fcntl locks in the cluster, under the kernel's owner number and the mount's
// session. A close drops the process's fcntl locks of the file (FLUSH). The last close of an open file
// description drops its flock and its own fcntl locks (RELEASE). close(2) returns before the kernel sends the
// RELEASE.
//
// So a non-waiting request may conflict with a lock whose descriptor was closed in the last 50 ms. It then
// waits for the release and asks again under another number. If the holder is on another mount, the leader
// asks the holder's mount ([Operator].AwaitRelease). One request waits once for each close, for 50 ms in all.
// Without an answer it is refused.
//
// The cluster finds deadlocks only among locks of processes. The request does not distinguish these from
// locks of open file descriptions; the caller's system call does. After the end of a session, other sessions
// may take its locks: descriptors with locks of the old session return EIO from then on.
//
// A request beyond its time limit may have been done. So the mount releases all locks of its owner on the
// file as soon as the cluster answers. Sometimes these are more locks than the request was about: a
// conversion, or a release of a part. Then the request and the owner's descriptors return EIO, even before
// the cluster knows. No other owner gets the locks before the end of the lock delay. Otherwise the request
// returns ETIMEDOUT, and the descriptor stays usable.
//
// flock on a directory never reaches this package: it works between the processes of one host.
//
// # Observations
//
// The mount records which lock a process saw last under a name. Removals, replacements and truncations carry
// this observation to the cluster. The cluster refuses them if another lock is there now: see package
// observation.
//
// The kernel opens by inode number. The mount takes the name from the last lookup of the same thread.
//
// # The control directory
//
// The root of a mount has a directory .lockfs, which no listing shows, with information on locks: see package
// control.
//
// Extended attributes user.lockfs.* describe a lock to programs with permission to read it; other data has
// none. getxattr(2) returns them, and lists omit them. Setting or removing one succeeds without effect.
// Reading one, or a file of why or kv, counts as an observation of the lock; asking for its size or listing
// locks does not.
//
// # Interrupts
//
// A signal interrupts only waits for a lock or an event. The kernel would restart an interrupted creation,
// which would then find its own file and take it for a conflict. So a call runs until the Operator has an
// outcome or reaches the time limit. A killed caller gets no answer: the mount takes an exclusive creation
// back and gives up a query. It waits at most one second for a change, as other callers may wait for the same
// directory's lock.
//
// # The end of the process
//
// Programs may still have files open at the end of the process, also after umount -l or in another mount
// namespace. [Mounted.InUse] asks the kernel. If it reports use, the caller must say so to the cluster at the
// end of the session: these programs may rely on their locks.
//
// An exclusive creation must not outlive a failed call, even if this process is killed before its answer. The
// Operator keeps the answer where another process finds and delivers it ([answer.Finish]).
//
// The kernel asks for attributes later in the same open(2). If no newer attributes are available, this thread
// gets those of the creation, however late it asks and from whichever process. This does not work for callers
// in an invisible pid namespace, beside or above this process's own.
//
// # Handing over and taking over
//
// [Mounted.HandOver] stops serving, and [TakeOver] continues in another process, or in another program in
// this one. Requests wait in the kernel meanwhile. Waits for locks keep their places in the cluster's queues,
// and the next process waits for them. Reads of future events start again. Open files, pins, locks and
// observations go along, so all guards stay effective. Some state is lost: caches, and removals elsewhere of
// watched files during the pause (inotify). HandOver fails while a request does not end, or before the
// cluster knows of all closed files.
//
// After a crash of this process, [TakeOver] continues from its crash state ([Mounted.Estate]). The kernel
// first sends all requests under way again. A request with a change may already have been done: TakeOver
// refuses it with EIO, as its outcome is unknown, and the Operator settles it. It handles other requests
// again. A lock of the same owner is taken a second time, and a waiting request waits again. The kernel
// itself ends a request with EIO if the crash came during its copy to the process.
//
// TakeOver assumes the most for state missing in the crash state. It may release a lock, or unpin an inode,
// which no program has. It loses none that a program has, and leaves none that no program has.
//
// # Deadlocks
//
// The process of a mount must never touch a file below it: the call would wait for the process itself. Send
// notifications to the kernel neither from a handler nor under a lock. The kernel may hold, for the request
// of this handler, the inode lock which the notification needs.
//
// A waiting notification cannot be interrupted. If its process ends, the thread stays with /dev/fuse open, so
// the request gets no answer and the lock stays held. Therefore the process ends a mount in use explicitly
// before it exits ([Mounted.End]); after a crash another process does ([mountpoint.Connection]).
package fusefs
