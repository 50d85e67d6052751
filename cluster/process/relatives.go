package process

import (
	"iter"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FindRelative is [Find] for the family of the calling thread's process: it is ErrUnknown unless the pid means that
// process itself, an ancestor or a descendant of it. Any other number that happens to be a pid is no evidence that
// the caller meant a process by it. Nor is 1, but for the caller itself: that is everybody's ancestor.
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

// IsRelative reports whether the process of a thread is a living process, or an ancestor or a descendant of it. Process 1, the ancestor of
// all, is kin to itself alone.
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

// relatives are a process, its ancestors and its descendants. That is far fewer than all there are; a child that comes or
// goes meanwhile can be missing, and so are they all where the kernel does not list children (PROC_CHILDREN).
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

// Children are those of all the threads of a process.
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

// Descendants returns the children of a process, their children, and so on, but none that has ended or is about to.
func Descendants(of int) (pids []int) {
	for _, pid := range Children(of) {
		if !Exiting(pid) {
			pids = append(pids, pid)
		}
		pids = append(pids, Descendants(pid)...)
	}
	return pids
}
