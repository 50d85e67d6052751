package process

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	maxEntries = 128 // are kept, with a descriptor for each
	maxThreads = 1024
)

// procTable spare reading the files of a process again, which costs ten times what it costs to see that
// they would say the same: a process that makes a lock asks dozens of times a second, and its family each
// time.
//
// What a process is (its start, its pid namespace) stays the same for as long as it lives, which its
// pidfd tells: a pid that has come back is another process's, and the pidfd of the one before has fired
// by then. Its process group is asked for each time. Its parent changes only when that one ends, so it is
// right as long as the parent's own record is (see stat.readParent). Whatever is not certain is read
// again.
type procTable struct {
	room int

	mu sync.Mutex
	of map[int]*procEntry // by pid
	// threads are those that are no main threads, with what their processes were.
	threads map[int]int
	times   uint64 // something was asked
}

func newProcTable(room int) *procTable {
	return &procTable{room: room, of: make(map[int]*procEntry), threads: make(map[int]int)}
}

// procEntry is of a process that was alive when it was made.
type procEntry struct {
	stat
	pidfd int
	asked uint64 // when it was for the last time, in procTable.times

	namespace  atomic.Pointer[uint64]
	namespaces atomic.Pointer[[]uint64]
	depth      atomic.Pointer[int]
}

// find answers what is known of the process that has a pid now. Its errors are those of identify: a
// process that has ended has none, waited for or not.
func (t *procTable) find(pid int) (*procEntry, stat, error) {
	if known, s, ok := t.recall(pid); ok {
		return known, s, nil
	}
	s, pidfd, err := identify(pid)
	if err != nil {
		return nil, stat{}, err
	}
	made := &procEntry{stat: s, pidfd: pidfd}
	t.keep(made)
	return made, s, nil
}

// recall looks whether the process lives of which there is a record, and what can have changed of it.
func (t *procTable) recall(pid int) (*procEntry, stat, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, found := t.of[pid]
	if !found {
		return nil, stat{}, false
	}
	group, err := unix.Getpgid(pid)
	if err != nil || checkRunning(known.pidfd) != nil { // only now it is certain whose group that is
		t.drop(known)
		return nil, stat{}, false
	}
	t.times++
	known.Group, known.asked = group, t.times
	return known, known.stat, true
}

// keep makes room for a record if need be: in place of those of processes that have ended, or else of the
// one that was asked for longest ago.
func (t *procTable) keep(made *procEntry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, found := t.of[made.PID]; found {
		t.drop(before)
	}
	if len(t.of) >= t.room {
		var oldest *procEntry
		for _, one := range t.of {
			if checkRunning(one.pidfd) != nil {
				t.drop(one)
			} else if oldest == nil || one.asked < oldest.asked {
				oldest = one
			}
		}
		if len(t.of) >= t.room {
			t.drop(oldest)
		}
	}
	t.times++
	made.asked = t.times
	t.of[made.PID] = made
}

// forget is for a process of which something else is true than was read.
func (t *procTable) forget(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, found := t.of[pid]; found {
		t.drop(known)
	}
}

// drop is called with the mutex held.
func (t *procTable) drop(one *procEntry) {
	delete(t.of, one.PID)
	_ = unix.Close(one.pidfd)
}

// lives tells whether the process of a record has not ended, as far as there still is that record.
func (t *procTable) lives(one *procEntry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[one.PID] == one && checkRunning(one.pidfd) == nil
}

// processOf answers which process a thread was found to belong to, if it still does.
func (t *procTable) processOf(thread int) (process int, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	process, found = t.threads[thread]
	return process, found && isOf(thread, process)
}

func (t *procTable) noteThread(thread, process int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.threads) >= maxThreads {
		clear(t.threads)
	}
	t.threads[thread] = process
}
