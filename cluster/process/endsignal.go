package process

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// OwnPidfd returns a pidfd of this process, for another process; nil: none available.
func OwnPidfd() *os.File {
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(pidfd), "process")
}

// EndSignal returns the signal that ended a process, by a pidfd opened before; 0: none, or unknown. Linux
// reports it from 6.15 on, after the parent has waited, and EndSignal waits up to limit for that.
func EndSignal(pidfd *os.File, limit time.Duration) unix.Signal {
	for deadline := time.Now().Add(limit); ; {
		end, tells := statusOf(int(pidfd.Fd()))
		switch {
		case end.Known && end.Status.Signaled():
			return end.Status.Signal()
		case end.Known, !tells:
			return 0
		}
		waited := []unix.PollFd{{Fd: int32(pidfd.Fd())}} // POLLHUP is implied
		if n, err := unix.Poll(waited, int(time.Until(deadline).Milliseconds())); err != unix.EINTR && n == 0 {
			return 0
		}
	}
}
