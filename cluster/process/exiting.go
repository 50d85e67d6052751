package process

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Exiting reports whether a process is being killed or is a zombie. One of its threads may stay for long,
// inside the kernel where signals do not reach it. An exec also kills threads, but not all.
func Exiting(pid int) bool {
	if !threadExiting(fmt.Sprintf("/proc/%d/task/%d", pid, pid)) { // mostly enough for a live process
		return false
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(threads) == 0 {
		return false // invisible, or it has ended
	}
	for _, thread := range threads {
		if !threadExiting(thread) {
			return false
		}
	}
	return true
}

// threadExiting is for a thread, by its directory below /proc. A missing thread counts as exiting.
func threadExiting(dir string) bool {
	var buffer [2048]byte // far more than the text up to SigPnd
	status, err := read(filepath.Join(dir, "status"), buffer[:])
	if err != nil {
		return isGone(dir)
	}
	if state := statusField(status, "State"); bytes.HasPrefix(state, []byte("Z")) || bytes.HasPrefix(state, []byte("X")) {
		return true
	}
	pending, err := strconv.ParseUint(string(statusField(status, "SigPnd")), 16, 64)
	return err == nil && (pending&(1<<(unix.SIGKILL-1)) != 0 || isExiting(dir))
}

func isGone(dir string) bool { return errors.Is(unix.Access(dir, unix.F_OK), unix.ENOENT) }

// isExiting reports whether a thread has begun its exit, which is final.
func isExiting(dir string) bool {
	const exiting = 0x4 // PF_EXITING of the kernel
	var buffer [1024]byte
	stat, err := read(filepath.Join(dir, "stat"), buffer[:])
	if err != nil {
		return isGone(dir)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const flags = 6 // proc(5): the ninth, after two others
	if len(fields) <= flags {
		return false
	}
	of, err := strconv.ParseUint(fields[flags], 10, 64)
	return err == nil && of&exiting != 0
}
