package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Dying tells whether a process is being killed or is a zombie, as of which one thread may be left for long: inside the
// kernel, where a signal does not reach it. One that executes another program kills its threads too, all but one.
func Dying(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(threads) == 0 {
		return false // it is not shown here, or it has ended
	}
	for _, thread := range threads {
		if !threadDies(thread) {
			return false
		}
	}
	return true
}

// threadDies tells it of a thread by its directory below /proc. One that is gone does not live.
func threadDies(dir string) bool {
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return isGone(err)
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "State":
			if strings.HasPrefix(value, "Z") || strings.HasPrefix(value, "X") {
				return true
			}
		case "SigPnd":
			pending, err := strconv.ParseUint(value, 16, 64)
			return err == nil && pending&(1<<(unix.SIGKILL-1)) != 0 || isExiting(dir)
		}
	}
	return false
}

func isGone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

// isExiting tells whether a thread has begun to end, from where it does not come back.
func isExiting(dir string) bool {
	const exiting = 0x4 // PF_EXITING of the kernel
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return isGone(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const flags = 6 // proc(5): the ninth, and two are before these
	if len(fields) <= flags {
		return false
	}
	of, err := strconv.ParseUint(fields[flags], 10, 64)
	return err == nil && of&exiting != 0
}
