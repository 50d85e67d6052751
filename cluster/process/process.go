package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Alive reports whether a process has not ended. It returns true if it cannot find out.
func Alive(id ID) bool {
	pidfd, err := id.open()
	if err != nil {
		return !errors.Is(err, errEnded)
	}
	_ = unix.Close(pidfd)
	return true
}

// open returns a pidfd of a live process.
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

// identify returns the process with a pid, and its pidfd. Both belong together, because the pidfd has not
// fired after the start was read.
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
		return errEnded // the last two are for a thread's id, which is no process's
	}
	return fmt.Errorf("open process %d: %w", pid, err)
}

// checkRunning is correct also for a process whose main thread has ended first. In /proc that one looks
// like a zombie.
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
