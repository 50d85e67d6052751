// Package process identifies the processes of this host, so that a lock can be tied to the one that holds
// it: which one a thread belongs to, which one a pid in a file means, who its ancestors are, and when it
// ends. All of it is said in the pid namespace of this process, and /proc has to be that namespace's.
package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ID is one process, and never another one's again during one boot: a pid comes back, but not with the
// same start.
type ID struct {
	PID   int    // in the pid namespace of this process
	Start uint64 // clock ticks from boot to its start (proc_pid_stat(5): starttime)
}

// ErrUnknown is for a process that does not exist, or that cannot be seen from here.
var ErrUnknown = errors.New("no process that can be seen from here")

// errEnded is for a process that surely does not exist any more.
var errEnded = fmt.Errorf("%w: it has ended", ErrUnknown)

// Of answers the process that a thread belongs to.
func Of(thread int) (ID, error) {
	s, err := statOf(thread)
	return s.ID, err
}

// Alive tells whether a process has not ended, as far as can be told: when there is no way to look, it is
// not taken for dead.
func Alive(id ID) bool {
	pidfd, err := id.open()
	if err != nil {
		return !errors.Is(err, errEnded)
	}
	_ = unix.Close(pidfd)
	return true
}

// open answers a pidfd of a process that has not ended.
func (id ID) open() (pidfd int, err error) {
	found, pidfd, err := identify(id.PID)
	if err != nil {
		return -1, err
	}
	if found != id {
		_ = unix.Close(pidfd)
		return -1, errEnded
	}
	return pidfd, nil
}

// identify answers which process has a pid, and a pidfd of it. Both are of one process, since the pidfd has
// not fired yet once the start has been read.
func identify(pid int) (id ID, pidfd int, err error) {
	pidfd, err = unix.PidfdOpen(pid, 0)
	if err != nil {
		return ID{}, -1, pidfdError(pid, err)
	}
	s, err := readStat(pid, pid)
	err = cmp.Or(checkRunning(pidfd), err)
	if err != nil {
		_ = unix.Close(pidfd)
		return ID{}, -1, err
	}
	return s.ID, pidfd, nil
}

func pidfdError(pid int, err error) error {
	switch {
	case pid <= 0:
		return ErrUnknown
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return errEnded // the last two are for the id of a thread, which a process cannot have as well
	}
	return fmt.Errorf("open process %d: %w", pid, err)
}

// checkRunning is right also for a process whose main thread has ended before the others. In /proc that one
// looks like any zombie.
func checkRunning(pidfd int) error {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return os.NewSyscallError("poll", err)
		case n > 0:
			return errEnded
		}
		return nil
	}
}
