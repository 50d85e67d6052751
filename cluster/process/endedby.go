package process

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Own is a pidfd of this process, to know of its end in another one; nil: there is none to be had.
func Own() *os.File {
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(pidfd), "process")
}

// EndedBy answers the signal that has ended a process, by a pidfd that was opened before; 0 if none has, or if nobody knows: Linux tells from
// 6.15 on, and only once the parent has taken note of the end, which is waited for as long as limit.
func EndedBy(pidfd *os.File, limit time.Duration) unix.Signal {
	for deadline := time.Now().Add(limit); ; {
		info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
		if unix.IoctlPidfdInfo(int(pidfd.Fd()), &info) != nil {
			return 0
		}
		if status := unix.WaitStatus(info.Exit_code); info.Mask&unix.PIDFD_INFO_EXIT != 0 {
			if status.Signaled() {
				return status.Signal()
			}
			return 0
		}
		noted := []unix.PollFd{{Fd: int32(pidfd.Fd())}} // POLLHUP, which nobody has to ask for
		if n, err := unix.Poll(noted, int(time.Until(deadline).Milliseconds())); err != unix.EINTR && n == 0 {
			return 0
		}
	}
}
