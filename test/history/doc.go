// Package history checks that the results of programs on a mounted namespace can be explained by one order.
//
// # Recording
//
// A [Client] makes system calls in one directory, like a program without knowledge of lockfs. It records each
// with its interval and its result ([Call]). Times are CLOCK_MONOTONIC, shared by all hosts made of
// namespaces. The outcome of a call is unknown if it did not return, or if its error does not tell whether it
// was done. The client then leaves the history, so each client has at most one such call.
//
// # Checking
//
// [History.Check] turns the calls into operations on a model of the directory, and porcupine searches for an
// order: each operation at one moment within its call. It checks directories separately. Links and renames
// connect the names of a directory, so a directory is the smallest separate part.
//
// A system call may be several requests that see different states: stat looks the name up and then asks for
// the attributes of the inode. Then each request is an operation with the whole call as its interval. This
// accepts more histories than possible, never fewer. A rename that finds one inode under both names, because
// another call renamed it meanwhile, does nothing. A listing is one request, and must match the directory at
// one moment.
//
// Inode numbers identify the meaning of a name. A number is created once. If a creation does not report it
// (mkdir, or an unknown outcome), a placeholder stands for it until a later call reports it.
//
// # Looks
//
// A process with a look at a lock may not remove, replace or truncate its name once it has another lock. So
// the model has the looks of each process, and they decide each removal: it succeeds without a look or with a
// look at the present lock, and fails otherwise. Each client is a process with one thread, so its calls show
// the order of its looks. A listing of the names, or its own removal of a name, clears its looks. A lock
// created or written by it stays its own.
//
// Histories write no contents that make a name a lock, so a rule must make all names locks. Without one they
// are data, and looks restrict no process ([History.Forgetful]).
//
// The lock of a name changes only when the name has been free: histories write no holders, so a lock replaced
// by a rename stays the same. Looks end with the process of the mount. A client notices that by a call
// without an answer, before it enters the next mount.
//
// In two cases the model accepts both results. A lock that was empty when it was read, and still is, may not
// be removed for five seconds of cluster time, which can jump or be slow. And an open that wants to create a
// file, but comes second, returns a descriptor without a look; the history cannot tell whether it came
// second.
//
// # Unknown outcomes
//
// A change of unknown outcome may take effect at any later time or never. This is all for writes, removals,
// plain renames, and creations that find an existing file. For an exclusive one (O_EXCL, mkdir, link, rename
// with NOREPLACE) lockfs promises more: after an error it leaves nothing behind. It may be visible for a
// while, so it is two operations: the creation and its undo. Each may come at any time from the call on, in
// either order (a creation after its undo does nothing). The undo comes before the run is settled, so later
// results are without it. The undo does nothing if the name has another file by then, or another process has
// changed the file.
//
// This also holds if the daemon dies: its guard process or its successor completes the call. There are two
// exceptions without a required undo: the caller was killed and may just have received the result, or the
// daemon's host lost its state before it could settle the call.
//
// Two results prove nothing: ESTALE for a path to look at (the name changed twice during the call, and
// nothing was done), and errors of calls that only read.
//
// # Locks of flock and fcntl
//
// The other kind of history ([LockHistory]) is of files that several processes lock through descriptors.
// Flocks are checked separately from the locks of processes and of open file descriptions. For each file and
// each of the two, an order must exist: no two locks that exclude each other are held at once, no request is
// refused without a reason, and F_GETLK reports an existing lock.
//
// A process that closes any descriptor of a file loses its own locks of it, and counts as another owner from
// then on. An open file description is one owner from open to close. lockfs may release locks late, and so
// may the model:
//
//   - close(2) returns before the mount notices the end of an open file description, so its locks may end at
//     any time after. The locks of a process have ended when close returns, unless the cluster did not answer
//     in time.
//   - A lost session ends its locks one lock delay later. The time of its end is not visible. But the session
//     was alive at the last successful call through the descriptor of a lock, until the owner released
//     everything. So the lock may end one lock delay after that call, not before, and the descriptor is
//     unusable until then.
//   - A process may have locks through another descriptor in the previous or next session. In an ended
//     session they count as another owner's: they may block the process itself, and its release keeps them
//     for the lock delay.
//   - A long wait may have requests in two sessions: after a signal with SA_RESTART the kernel asks again. A
//     lock of the first session stays for the lock delay and counts as another owner's.
//   - After a call of unknown outcome, the range may be locked or not until its owner's end. If the owner had
//     other locks, it gets EIO, and they end as with a lost session, although other descriptors of the
//     process may still work.
//
// Clients write pids into locked files, their own or those of short-lived helpers, and leave them there; some
// clients are killed. The content makes no file a lock here: it stays the same file, and no call is refused
// for its content.
//
// No client gets EDEADLK: it has several threads, and lockfs does not assume that such a process keeps
// waiting.
//
// # Creations and locks
//
// In the third kind, clients create the same names, exclusively or not, lock the files ([Client.PlayHolds])
// and write pids into them, while other creations are abandoned. No client removes a name, so its lock has
// one holder at a time, on whatever file ([CheckHolds]).
package history
