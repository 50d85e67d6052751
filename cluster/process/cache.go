package process

import (
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// table has recently read processes, for all callers.
var table = newProcTable(maxEntries)

// statOf returns the stat of a thread's process.
func statOf(thread int) (stat, error) {
	process, err := leader(thread)
	if err != nil {
		return stat{}, err
	}
	if _, s, err := table.find(process); err == nil && isOf(thread, process) {
		return s, nil
	}
	return readStat(thread, process) // also of a zombie
}

// leader returns the id of a thread's process. Callers are mostly main threads, and that is cheap to
// check: tgkill(2) returns ESRCH for a thread of another process before anything else, at a twentieth of
// the cost of a file in /proc.
func leader(thread int) (int, error) {
	if unix.Tgkill(thread, thread, 0) != unix.ESRCH {
		return thread, nil
	}
	if process, found := table.processOf(thread); found {
		return process, nil
	}
	// The field is one of the first, before the long ones.
	var buffer [1024]byte
	status, err := read("/proc/"+strconv.Itoa(thread)+"/status", buffer[:])
	if err != nil {
		return 0, err
	}
	process, err := strconv.Atoi(string(statusField(status, "Tgid")))
	if err == nil {
		table.noteThread(thread, process)
	}
	return process, err
}

// cached returns a fact that is constant for a process and its threads. It calls ask the first time, and
// does not cache errors.
func cached[T any](thread int, of func(*procEntry) *atomic.Pointer[T], ask func(thread int) (T, error)) (T, error) {
	var one *procEntry
	if process, err := leader(thread); err == nil {
		one, _, _ = table.find(process)
	}
	if one == nil || !isOf(thread, one.PID) {
		return ask(thread)
	}
	if answer := of(one).Load(); answer != nil {
		return *answer, nil
	}
	answer, err := ask(thread)
	if err == nil && table.lives(one) && isOf(thread, one.PID) {
		of(one).Store(&answer)
	}
	return answer, err
}
