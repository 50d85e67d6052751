package process

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	maxEntries = 128 // limit of cached processes, with a descriptor each
	maxThreads = 1024
)

// procTable caches facts from the files of processes. A check of the cache costs a tenth of reading the
// files. A process with many locks needs them dozens of times a second, with its family each time.
//
// The start and the pid namespace of a process never change while its pidfd reports it alive. If its pid is
// reused, the pidfd has fired before. The process group is read each time. The parent changes only when the
// parent ends, so the cache checks the parent's entry as well (see stat.readParent). Anything uncertain is
// read again.
type procTable struct {
	room int

	mu sync.Mutex
	of map[int]*procEntry // by pid
	// threads maps threads other than main threads to their processes.
	threads map[int]int
	times   uint64 // number of lookups
}

func newProcTable(room int) *procTable {
	return &procTable{room: room, of: make(map[int]*procEntry), threads: make(map[int]int)}
}

// procEntry describes a process which was alive at the time of the read.
type procEntry struct {
	stat
	pidfd int
	asked uint64 // last lookup, as in procTable.times

	namespace  atomic.Pointer[uint64]
	namespaces atomic.Pointer[[]uint64]
	depth      atomic.Pointer[int]
}

// find returns the entry for a pid. Its errors are those of identify: an ended process has no entry, even as
// a zombie.
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

// recall returns the cached entry of a live process, with its variable facts read again.
func (t *procTable) recall(pid int) (*procEntry, stat, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, found := t.of[pid]
	if !found {
		return nil, stat{}, false
	}
	group, err := unix.Getpgid(pid)
	if err != nil || checkRunning(known.pidfd) != nil { // only now the group surely belongs to this process
		t.drop(known)
		return nil, stat{}, false
	}
	t.times++
	known.Group, known.asked = group, t.times
	return known, known.stat, true
}

// keep adds an entry. If necessary it drops ended processes, or else the least recently used entry.
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

// forget drops an entry with outdated facts.
func (t *procTable) forget(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, found := t.of[pid]; found {
		t.drop(known)
	}
}

// drop removes an entry. The caller holds the mutex.
func (t *procTable) drop(one *procEntry) {
	delete(t.of, one.PID)
	_ = unix.Close(one.pidfd)
}

// lives reports whether the process of a cached entry is alive.
func (t *procTable) lives(one *procEntry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[one.PID] == one && checkRunning(one.pidfd) == nil
}

// processOf returns the cached process of a thread, if the thread still belongs to it.
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
