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
	// callWait is how long a thread may take from a request to its wait for the answer, and callPoll how often it is looked at.
	callWait = 100 * time.Millisecond
	callPoll = time.Millisecond
)

// FcntlCommand is what a thread that waits in fcntl(2) has asked for, which a request does not tell; -1 if it is not known.
func FcntlCommand(thread uint32) int {
	call, arguments := systemCall(thread)
	if call != unix.SYS_FCNTL || len(arguments) < 2 {
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
// does for a listener of fanotify(7), or fchmod(2) in an overlay.
func BeginsAnew(thread uint32) bool {
	call, _ := systemCall(thread)
	return slices.Contains(walking, call)
}

// systemCall is that in which a thread waits; -1 if it is not known.
func systemCall(thread uint32) (number int, arguments [][]byte) {
	for end := time.Now().Add(callWait); ; time.Sleep(callPoll) {
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", thread))
		fields := bytes.Fields(call)
		if err != nil || len(fields) == 0 {
			return -1, nil
		}
		if string(fields[0]) == "running" && time.Now().Before(end) {
			continue // it does not wait yet
		}
		number, err := strconv.Atoi(string(fields[0]))
		if err != nil {
			return -1, nil
		}
		return number, fields[1:]
	}
}

// IsAlone tells whether a thread is all that there is of its process.
func IsAlone(thread uint32) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	return err == nil && bytes.Contains(status, []byte("\nThreads:\t1\n"))
}
