// Package worker runs a command that touches a mount as two processes.
//
// The kernel does not end a process while one of its threads waits for the answer to a FUSE request that the mount's daemon
// has read: neither a signal nor exit(2) helps. If the daemon hangs, so does the process, and the shell that waits for it. So
// the front process, which the caller started, touches no file system. It starts this program again as its worker, which does
// the work, passes signals on to it, and exits with the worker's exit code. If the worker has not ended a few seconds after a
// signal, or after the time that it may wait ([Worker.Waits]), the front exits without it.
//
// A worker whose front is gone finishes in the background: it gives back a lock that it acquires afterwards ([Worker.Keep]), or
// ends the command that it runs, and then releases the lock ([Worker.Gone]). So a lock is not free before the processes that
// were started under it have ended, also if the front is killed with SIGKILL. If the worker itself is killed, the front kills
// these processes.
//
// The two talk over a socket, one byte for most messages.
package worker
