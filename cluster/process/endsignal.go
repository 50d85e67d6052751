package process

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// OwnPidfd is a pidfd of this process, to know of its end in another one; nil: there is none to be had.
func OwnPidfd() *os.File {
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(pidfd), "process")
}

// EndSignal returns the signal that ended a process, by a pidfd that was opened before. It is 0 if no signal did, or if that is not
// known: Linux tells from 6.15 on, and only once the parent has waited for the process, for which EndSignal waits as long as limit.
func EndSignal(pidfd *os.File, limit time.Duration) unix.Signal {
	for deadline := time.Now().Add(limit); ; {
		end, tells := statusOf(int(pidfd.Fd()))
		switch {
		case end.Known && end.Status.Signaled():
			return end.Status.Signal()
		case end.Known, !tells:
			return 0
		}
		waited := []unix.PollFd{{Fd: int32(pidfd.Fd())}} // POLLHUP, which comes unasked
		if n, err := unix.Poll(waited, int(time.Until(deadline).Milliseconds())); err != unix.EINTR && n == 0 {
			return 0
		}
	}
}
