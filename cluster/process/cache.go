package process

import (
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// table is what was read of processes lately. It is the same whoever asks, so there is one.
var table = newProcTable(maxEntries)

// statOf answers that of the process which a thread belongs to.
func statOf(thread int) (stat, error) {
	process, err := leader(thread)
	if err != nil {
		return stat{}, err
	}
	if _, s, err := table.find(process); err == nil && isOf(thread, process) {
		return s, nil
	}
	return readStat(thread, process) // also of a process that has ended and was not waited for
}

// leader answers the id of a thread's process, which is that of its main thread. Callers are mostly main
// threads themselves, and whether they are costs a twentieth of reading a file in /proc: tgkill(2) answers
// ESRCH for a thread of another process before it looks at anything else.
func leader(thread int) (int, error) {
	if unix.Tgkill(thread, thread, 0) != unix.ESRCH {
		return thread, nil
	}
	if process, found := table.processOf(thread); found {
		return process, nil
	}
	// The field is one of the first, before those that can be long.
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

// cached answers what stays the same for a process and all its threads, and asks for it if that was not done yet. An error is
// not remembered.
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
