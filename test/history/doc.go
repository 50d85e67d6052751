// Package history checks that what programs saw of a mounted namespace could have happened in one order.
//
// # Recording
//
// A [Client] does system calls in one directory, as a program that knows nothing of lockfs would, and
// writes down each with its interval and its outcome ([Call]). The times are CLOCK_MONOTONIC, which all
// hosts made of namespaces share. A call that did not return, or failed in a way that does not tell
// whether it was done, has an unknown outcome; the client then leaves the history, so that there is at
// most one such call for each client.
//
// # Checking
//
// [History.Check] turns the calls into operations on a model of the directory and lets porcupine look for
// an order: each operation at one moment within its call. Directories are checked one by one. What links
// and renames can join are the names of a directory, so it is the smallest part that can be judged alone.
//
// A system call is not always one request. Where it is several that may each see another state (stat
// looks the name up and then asks for the attributes of what it found), each is an operation of its own
// with the whole call as its interval. That accepts more than there can be, never less. A rename that finds
// both names to be of one file, because another call renamed it meanwhile, does nothing. A listing is one
// request, and has to be the directory as it was at one moment.
//
// Inode numbers tell what a name meant. A number is created once; one whose creation did not tell it
// (mkdir, or an unknown outcome) is a placeholder until somebody sees it.
//
// # What a process saw
//
// A process that read or made a lock and removes, replaces or truncates that name later is refused if the
// name is another lock by then. So the model has the memory of each process, and every removal has to come
// out as that memory demands: done by one that is held to nothing or saw what is there, refused to others.
// A client is a process of its own, with one thread, so that its calls tell what it saw in which order. It is held to nothing
// that it saw before it listed the names, or removed the name itself; but what it made, or wrote to, is its own still.
//
// Histories write nothing that makes a name a lock, so a rule has to say that all of them are. Without one they are data, and
// nobody is held to anything ([History.Forgetful]).
//
// Which lock a name is changes only when the name has been free: histories write nothing that says who
// holds a lock, so one that is replaced by a rename stays the same. Memory ends with the process of the
// mount; a client meets that as a call that has nobody to answer it, before it gets to the next mount.
//
// The model cannot tell which way it is, and accepts both, in two places. A lock that was empty when it was
// read, and still is, may not be removed for five seconds of cluster time, which can leap or be slow. And
// an open that wants to create a file, but comes second, yields a descriptor that does not know its lock;
// that it came second cannot be seen, only that it may have.
//
// # Unknown outcomes
//
// A change whose outcome is unknown may take effect at any later time or never. That is all that can be
// said of writes, removals, plain renames, and creations that find what is there. Of an exclusive one (O_EXCL, mkdir, link, rename
// with NOREPLACE) lockfs promises more: after an error it leaves nothing behind. It may have been seen for a
// while, so it is two operations, the creation and its taking back. Each may come at any time from the
// call on, in either order (a creation that comes second does nothing), but the taking back comes before
// the time at which the run is known to be settled: what is seen later is without it. The taking back
// does nothing if the name has become something else, or somebody has changed what it is of.
//
// That holds for a call whose daemon died too: its guard or its successor sees to it. Only of a caller
// that was itself killed nobody can say whether it had just been told; there the taking back need not come, nor where the daemon's host
// lost what the daemon knew while it could not settle it.
//
// What nothing is concluded from: ESTALE where a path was given to look at (the name changed twice during
// the call; nothing was done), and failures of calls that only read.
//
// # Locks of flock and fcntl
//
// The other kind of history ([LockHistory]) is of files that several processes lock through descriptors. Flocks are
// judged by themselves, and so are the locks of processes together with those of open file descriptions. For each
// file and each of the two there has to be an order in which nobody gets what excludes another one's lock, nobody is
// refused without a reason, and F_GETLK tells of a lock that is there.
//
// A process that closes any descriptor of a file loses its own locks of it, and counts as another owner from then on;
// an open file description is one from its opening to its close. Where lockfs lets locks go late, the model does:
//
//   - close(2) returns before the mount hears that an open file description is gone. Its locks may go at any time
//     after; those of a process are gone when close returns, unless the cluster could not be told in time.
//   - A session that is lost takes its locks with it, a lock delay later. When it ended nobody can see, but it was alive at the
//     last call that succeeded through the descriptor by which something was locked, until the owner released all. So what was
//     locked through that may go a lock delay after that call, and not before; nothing more is done through it until then.
//   - A process may have locked through another descriptor in the session before or the next one. What it has in one that has ended
//     is another one's to it: it may be refused that, and what it releases then stays for the lock delay.
//   - Who waited long may have asked in two sessions, as after a signal whose handler has calls go on (SA_RESTART) the kernel asks
//     again. What it got in the first stays for the lock delay, and is another one's to it.
//   - Of a call of unknown outcome, the range may be locked or not until its owner's end. If its owner had something else,
//     it is answered EIO, and what the owner had goes as with a session that is lost, though other descriptors of the process
//     may still be good.
//
// Clients write pids into what they have locked, their own or those of helpers that end at once, and leave them there; some are
// killed. What a file says is nobody's lock: it stays the same file, and nobody is refused anything for its content.
//
// No client is ever told of a deadlock: it has several threads, and lockfs does not count on such a process to go on waiting.
//
// # Creations and locks
//
// In the third kind, clients create the same names, exclusively or not, and lock the files that they get ([Client.PlayHolds])
// and write pids into them, while creations are given up. As nobody removes a name, its lock has one holder at a time, whatever file it is
// on ([CheckHolds]).
package history
