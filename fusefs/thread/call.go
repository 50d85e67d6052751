package thread

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// callWait is how long a thread may take from a request to its wait for the answer, and callPoll when it is looked at again first; and
	// later, as it may wait for a processor, which looking often is no help for.
	callWait        = 100 * time.Millisecond
	callPoll        = time.Millisecond
	longestCallPoll = 20 * callPoll
	// fcntlWait is callWait for who has to know.
	fcntlWait = 5 * time.Second

	// running is in place of a system call's number: the thread does not wait, in whatever it is.
	running = -2
)

// proc is where the kernel tells of threads.
var proc = "/proc"

// FcntlCommand is what a thread that waits in fcntl(2) has asked for, which a request does not tell; -1 if it is not known.
func FcntlCommand(thread uint32) int { return fcntlCommand(callWait, thread) }

// SurelyFcntlCommand is FcntlCommand for who has to know. It waits for up to 5 s for a thread to wait.
func SurelyFcntlCommand(thread uint32) int { return fcntlCommand(fcntlWait, thread) }

func fcntlCommand(limit time.Duration, thread uint32) int {
	call, arguments, known := systemCallWithin(limit, thread)
	isFcntl := call == unix.SYS_FCNTL || slices.Contains(foreignFcntl, call) && isForeign(arguments)
	if !known || !isFcntl || len(arguments) < 2 {
		return -1
	}
	command, err := strconv.ParseInt(string(arguments[1]), 0, 32)
	if err != nil {
		return -1
	}
	return int(command)
}

// BeginsAnew tells of a thread that waits in a system call which opens, reads or cuts the file at the end of a path: of these the
// kernel does not tell that something was stale (ESTALE) before it has walked the path once more. Others open files too, as read(2)
// does for a listener of fanotify(7), or fchmod(2) in an overlay; but the call of a thread that may not be looked at (ptrace(2)), or that
// runs, is taken for one of these, as almost all are.
func BeginsAnew(thread uint32) bool {
	call, _, known := systemCall(thread)
	return !known || mayWalk(call)
}

// IsSeenToBegin is BeginsAnew, but false of a thread that may not be looked at. Of one that runs it is true: it may have been
// told of the first part of its call, and wait for a processor ever since.
func IsSeenToBegin(thread uint32) bool {
	call, _, known := systemCall(thread)
	return known && mayWalk(call)
}

// MayBegin is BeginsAnew for who judges by the time what cannot be seen: it is true also of a thread whose call has a number of another table, as
// that of a program of 32 bits has, or is none of its own, as what a worker of io_uring(7) does.
func MayBegin(thread uint32) bool {
	call, arguments, known := systemCall(thread)
	return !known || mayWalk(call) || isForeign(arguments)
}

// isForeign tells that by the stack pointer, the last but one of what the kernel tells of a thread that waits: it is below 4 GiB, or 0.
func isForeign(arguments [][]byte) bool {
	if len(arguments) < 2 {
		return false
	}
	stack, err := strconv.ParseUint(string(arguments[len(arguments)-2]), 0, 64)
	return err == nil && stack < 1<<32
}

func mayWalk(call int) bool { return call == running || slices.Contains(walking, call) }

// walking are the system calls of which BeginsAnew tells.
var walking = append([]int{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_TRUNCATE, unix.SYS_READLINKAT,
}, older...)

// systemCall is that in which a thread waits, if it is known; running, or another below 0: in none.
func systemCall(thread uint32) (number int, arguments [][]byte, known bool) {
	return systemCallWithin(callWait, thread)
}

func systemCallWithin(limit time.Duration, thread uint32) (number int, arguments [][]byte, known bool) {
	poll := callPoll
	for end := time.Now().Add(limit); ; time.Sleep(poll) {
		call, err := os.ReadFile(fmt.Sprintf("%s/%d/syscall", proc, thread))
		fields := bytes.Fields(call)
		if err != nil || len(fields) == 0 {
			return 0, nil, false
		}
		if string(fields[0]) == "running" {
			if time.Now().Before(end) {
				poll = min(2*poll, longestCallPoll)
				continue // it does not wait yet
			}
			return running, nil, true
		}
		number, err := strconv.Atoi(string(fields[0]))
		return number, fields[1:], err == nil
	}
}

// IsAlone tells whether a thread is all that there is of its process.
func IsAlone(thread uint32) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	return err == nil && bytes.Contains(status, []byte("\nThreads:\t1\n"))
}
