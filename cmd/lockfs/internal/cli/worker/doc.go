// Package worker runs a command on a mount as two processes.
//
// The kernel does not end a process while one of its threads waits for the reply to a FUSE request that the
// mount's daemon has read: neither a signal nor exit(2) helps. If the daemon hangs, the process hangs, and
// with it the calling shell. So the front process, which the caller started, uses no file system. It starts
// this program again as its worker, passes signals on to it, and exits with the worker's exit code. The front
// exits without the worker a few seconds after a signal or after the wait limit ([Worker.Waits]).
//
// A worker without a front finishes in the background: it releases a lock acquired afterwards
// ([Worker.Keep]), or ends its command and then releases the lock ([Worker.Gone]). So a lock is not free
// before the processes under it have ended, even if the front is killed with SIGKILL. If the worker is
// killed, the front kills these processes.
//
// The two communicate over a socket, with one byte for most messages.
package worker
