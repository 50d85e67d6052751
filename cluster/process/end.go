package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// End is how a process ended; the zero End is unknown.
type End struct {
	Known  bool
	Status unix.WaitStatus
}

// statusOf returns how a pidfd's process ended. The kernel reports it from Linux 6.15 on, after the
// parent has waited. tells is false before Linux 6.13, which lacks the ioctl.
func statusOf(pidfd int) (end End, tells bool) {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	if unix.IoctlPidfdInfo(pidfd, &info) != nil {
		return End{}, false
	}
	if info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return End{}, true
	}
	return End{Known: true, Status: unix.WaitStatus(info.Exit_code)}, true
}

// statusOfZombie returns how a zombie ended, from /proc. The kernel shows 0 without permission, so 0
// counts only with CAP_SYS_PTRACE.
func statusOfZombie(id ID) End {
	var buffer [2048]byte
	path := "/proc/" + strconv.Itoa(id.PID) + "/stat"
	line, err := read(path, buffer[:])
	if err != nil {
		return End{}
	}
	s, err := parseStat(line)
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	const state, exitCode = 0, 49 // proc_pid_stat(5): the third field and the fifty-second
	if err != nil || s.Start != id.Start || len(fields) <= exitCode || fields[state][0] != 'Z' {
		return End{}
	}
	status, err := strconv.ParseUint(string(fields[exitCode]), 10, 32)
	if err != nil || status == 0 && !seesStatuses() {
		return End{}
	}
	return End{Known: true, Status: unix.WaitStatus(status)}
}

// seesStatuses reports whether this process may see the exit status of every zombie.
var seesStatuses = sync.OnceValue(func() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
})

// openToTheEnd is [ID.open], also for a zombie.
func (id ID) openToTheEnd() (pidfd int, err error) {
	pidfd, err = unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return -1, pidfdError(id.PID, err)
	}
	s, err := readStat(id.PID, id.PID)
	if err == nil && s.ID != id {
		err = errEnded
	}
	if errors.Is(err, ErrUnknown) && checkRunning(pidfd) != nil {
		err = errEnded // its parent waited between the two calls
	}
	if err != nil {
		_ = unix.Close(pidfd)
		return -1, err
	}
	return pidfd, nil
}

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
