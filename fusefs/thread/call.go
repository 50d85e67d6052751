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
	// callWait is how long a thread may take from a request to its wait for the answer. callPoll is the first
	// pause between checks. Later pauses are longer: the thread may wait for a processor.
	callWait        = 100 * time.Millisecond
	callPoll        = time.Millisecond
	longestCallPoll = 20 * callPoll
	// fcntlWait is callWait for SurelyFcntlCommand.
	fcntlWait = 5 * time.Second

	// running replaces the number of a system call: the thread does not wait.
	running = -2
)

// proc is the kernel's directory of threads.
var proc = "/proc"

// FcntlCommand returns the command of a thread waiting in fcntl(2), which its request does not carry; -1 if
// unknown.
func FcntlCommand(thread uint32) int { return fcntlCommand(callWait, thread) }

// SurelyFcntlCommand is FcntlCommand for callers which need the result. It waits up to 5 s for the thread's
// wait.
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

// BeginsAnew reports whether a thread waits in a system call which opens, reads or truncates the file at the
// end of a path. In these calls, the kernel walks the path again before it returns ESTALE to the program.
// Other calls also open files: read(2) for a listener of fanotify(7), or fchmod(2) in an overlay. The result
// is true for a thread which runs, or which this process may not inspect (ptrace(2)): almost all calls are of
// the first kind.
func BeginsAnew(thread uint32) bool {
	call, _, known := systemCall(thread)
	return !known || mayWalk(call)
}

// IsSeenToBegin is BeginsAnew, but false for a thread which this process may not inspect. It is true for a
// running thread: it may have waited for a processor since the first answer of its call.
func IsSeenToBegin(thread uint32) bool {
	call, _, known := systemCall(thread)
	return known && mayWalk(call)
}

// MayBegin is BeginsAnew for a decision by time in case of doubt. It is also true for a call number from
// another table, as of 32-bit programs. The same holds for a thread without its own call, as a worker of
// io_uring(7).
func MayBegin(thread uint32) bool {
	call, arguments, known := systemCall(thread)
	return !known || mayWalk(call) || isForeign(arguments)
}

// isForeign reports such a thread by its stack pointer, the last but one value of a waiting thread: below 4
// GiB, or 0.
func isForeign(arguments [][]byte) bool {
	if len(arguments) < 2 {
		return false
	}
	stack, err := strconv.ParseUint(string(arguments[len(arguments)-2]), 0, 64)
	return err == nil && stack < 1<<32
}

func mayWalk(call int) bool { return call == running || slices.Contains(walking, call) }

// walking are the system calls of BeginsAnew.
var walking = append([]int{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_TRUNCATE, unix.SYS_READLINKAT,
}, older...)

// systemCall returns the system call in which a thread waits, if known; running or another number below 0:
// none.
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

// IsAlone reports whether a thread is its process's only one.
func IsAlone(thread uint32) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	return err == nil && bytes.Contains(status, []byte("\nThreads:\t1\n"))
}
