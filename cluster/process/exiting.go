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

// Exiting tells whether a process is being killed or is a zombie, as of which one thread may be left for long: inside the
// kernel, where a signal does not reach it. One that executes another program kills its threads too, all but one.
func Exiting(pid int) bool {
	if !threadExiting(fmt.Sprintf("/proc/%d/task/%d", pid, pid)) { // of one that lives, mostly this is all that is looked at
		return false
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(threads) == 0 {
		return false // it is not shown here, or it has ended
	}
	for _, thread := range threads {
		if !threadExiting(thread) {
			return false
		}
	}
	return true
}

// threadExiting tells it of a thread by its directory below /proc. One that is gone does not live.
func threadExiting(dir string) bool {
	var buffer [2048]byte // far more than there is up to SigPnd
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

// isExiting tells whether a thread has begun to end, from where it does not come back.
func isExiting(dir string) bool {
	const exiting = 0x4 // PF_EXITING of the kernel
	var buffer [1024]byte
	stat, err := read(filepath.Join(dir, "stat"), buffer[:])
	if err != nil {
		return isGone(dir)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const flags = 6 // proc(5): the ninth, and two are before these
	if len(fields) <= flags {
		return false
	}
	of, err := strconv.ParseUint(fields[flags], 10, 64)
	return err == nil && of&exiting != 0
}
