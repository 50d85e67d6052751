package thread

import (
	"bytes"
	"fmt"
	"os"
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
	for end := time.Now().Add(callWait); ; time.Sleep(callPoll) {
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", thread))
		fields := bytes.Fields(call)
		if err != nil || len(fields) == 0 {
			return -1
		}
		if string(fields[0]) == "running" && time.Now().Before(end) {
			continue // it does not wait yet
		}
		if string(fields[0]) != strconv.Itoa(unix.SYS_FCNTL) || len(fields) < 3 {
			return -1
		}
		command, err := strconv.ParseInt(string(fields[2]), 0, 32)
		if err != nil {
			return -1
		}
		return int(command)
	}
}

// IsAlone tells whether a thread is all that there is of its process.
func IsAlone(thread uint32) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	return err == nil && bytes.Contains(status, []byte("\nThreads:\t1\n"))
}
