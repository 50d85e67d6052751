package process

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// MarkVariable is an environment variable with a random number. It marks the processes of one `lockfs
// run`. Descendants inherit it, in any session and with any parent, unless a program clears its
// environment.
const MarkVariable = "LOCKFS_RUN"

// MarksVariable has the same mark, in the environment of the lock's holder, which starts the command.
const MarksVariable = "LOCKFS_RUNS"

// leastMark is the least length of a mark: it has to be unguessable.
const leastMark = 32

// MarkOf returns the mark for a process's children; empty: none, or unreadable.
func MarkOf(pid int) string {
	for _, variable := range environ(pid) {
		if mark, is := strings.CutPrefix(string(variable), MarksVariable+"="); is && len(mark) >= leastMark {
			return mark
		}
	}
	return ""
}

// IsMarked reports whether a process has a mark.
func IsMarked(pid int, mark string) bool {
	marked := []byte(MarkVariable + "=" + mark)
	return slices.ContainsFunc(environ(pid), func(variable []byte) bool { return bytes.Equal(variable, marked) })
}

// Marked returns the live processes with a mark.
func Marked(mark string) (pids []int) {
	processes, _ := os.ReadDir("/proc")
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err == nil && IsMarked(pid, mark) && !Exiting(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// environ returns the initial environment of a process.
func environ(pid int) [][]byte {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return bytes.Split(content, []byte{0})
}
