package process

import (
	"iter"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FindRelative is [Find], limited to the calling thread's process, its ancestors and descendants; else it
// returns ErrUnknown. Another number which happens to be a pid is no evidence of a process. Neither is 1,
// except for the caller itself: it is everyone's ancestor.
func FindRelative(caller, pid int) (ID, error) {
	id, err := find(caller, pid, relatives)
	if err != nil {
		return ID{}, err
	}
	own, err := statOf(caller)
	switch {
	case err != nil:
		return ID{}, err
	case id == own.ID:
		return id, nil
	case pid == 1:
		return ID{}, ErrUnknown
	}
	if own.descendsFrom(id) {
		return id, nil
	}
	of, err := statOf(id.PID)
	if err != nil {
		return ID{}, err
	}
	if of.ID != id || !of.descendsFrom(own.ID) {
		return ID{}, ErrUnknown
	}
	return id, nil
}

// IsRelative reports whether a thread's process is a live process, its ancestor or its descendant.
// Process 1, the ancestor of all, is related only to itself.
func IsRelative(thread int, of ID) bool {
	own, err := statOf(thread)
	if err != nil {
		return false
	}
	pidfd, err := of.open()
	if err != nil {
		return false
	}
	_ = unix.Close(pidfd)
	if own.ID == of || own.PID != 1 && of.PID != 1 && own.descendsFrom(of) {
		return true
	}
	s, err := statOf(of.PID)
	return err == nil && s.ID == of && own.PID != 1 && of.PID != 1 && s.descendsFrom(own.ID)
}

func (s stat) descendsFrom(ancestor ID) bool {
	for relative := range s.ancestors() {
		if relative.ID == ancestor {
			return relative.ID != s.ID
		}
	}
	return false
}

// relatives returns a process, its ancestors and its descendants, far fewer than all processes. A child
// that starts or ends meanwhile may be missing, and all children are without PROC_CHILDREN in the kernel.
func relatives(of stat) iter.Seq[int] {
	return func(yield func(int) bool) {
		for relative := range of.ancestors() {
			if !yield(relative.PID) {
				return
			}
		}
		descendants := Children(of.PID)
		for i := 0; i < len(descendants); i++ {
			if !yield(descendants[i]) {
				return
			}
			descendants = append(descendants, Children(descendants[i])...)
		}
	}
}

// Children returns the children of all threads of a process.
func Children(process int) (pids []int) {
	tasks := "/proc/" + strconv.Itoa(process) + "/task/"
	threads, _ := os.ReadDir(tasks)
	for _, thread := range threads {
		list, _ := os.ReadFile(tasks + thread.Name() + "/children")
		for field := range strings.FieldsSeq(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Descendants returns the live children of a process, their children, and so on.
func Descendants(of int) (pids []int) {
	for _, pid := range Children(of) {
		if !Exiting(pid) {
			pids = append(pids, pid)
		}
		pids = append(pids, Descendants(pid)...)
	}
	return pids
}
