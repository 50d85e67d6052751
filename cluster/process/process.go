package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

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
	if found.ID != id {
		_ = unix.Close(pidfd)
		return -1, errEnded
	}
	return pidfd, nil
}

// identify answers which process has a pid, and a pidfd of it. Both are of one process, since the pidfd has
// not fired yet once the start has been read.
func identify(pid int) (s stat, pidfd int, err error) {
	pidfd, err = unix.PidfdOpen(pid, 0)
	if err != nil {
		return stat{}, -1, pidfdError(pid, err)
	}
	s, err = readStat(pid, pid)
	err = cmp.Or(checkRunning(pidfd), err)
	if err != nil {
		_ = unix.Close(pidfd)
		return stat{}, -1, err
	}
	return s, pidfd, nil
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
