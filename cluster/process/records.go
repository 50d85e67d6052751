package process

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	mostRecords = 128 // are kept, with a descriptor for each
	mostThreads = 1024
)

// records spare reading the files of a process again, which costs ten times what it costs to see that they would say the
// same: a process that makes a lock asks dozens of times a second, and its family each time.
//
// What a process is (its start, its pid namespace) stays the same for as long as it lives, which its pidfd tells: a pid
// that has come back is another process's, and the pidfd of the one before has fired by then. Its process group is asked for
// each time. Its parent changes only when that one ends, so it is right as long as the parent's own record is (see
// stat.readParent). Whatever is not certain is read again.
type records struct {
	room int

	mu sync.Mutex
	of map[int]*record // by pid
	// threads are those that are no main threads, with what their processes were.
	threads map[int]int
	times   uint64 // something was asked
}

func newRecords(room int) *records {
	return &records{room: room, of: make(map[int]*record), threads: make(map[int]int)}
}

// record is of a process that was alive when it was made.
type record struct {
	stat
	pidfd int
	asked uint64 // when it was for the last time, in records.times

	namespace  atomic.Pointer[uint64]
	namespaces atomic.Pointer[[]uint64]
	depth      atomic.Pointer[int]
}

// find answers what is known of the process that has a pid now. Its errors are those of identify: a process that has ended
// has none, waited for or not.
func (r *records) find(pid int) (*record, stat, error) {
	if known, s, ok := r.recall(pid); ok {
		return known, s, nil
	}
	s, pidfd, err := identify(pid)
	if err != nil {
		return nil, stat{}, err
	}
	made := &record{stat: s, pidfd: pidfd}
	r.keep(made)
	return made, s, nil
}

// recall looks whether the process lives of which there is a record, and what can have changed of it.
func (r *records) recall(pid int) (*record, stat, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.of[pid]
	if !found {
		return nil, stat{}, false
	}
	group, err := unix.Getpgid(pid)
	if err != nil || checkRunning(known.pidfd) != nil { // only now it is certain whose group that is
		r.drop(known)
		return nil, stat{}, false
	}
	r.times++
	known.Group, known.asked = group, r.times
	return known, known.stat, true
}

// keep makes room for a record if need be: in place of those of processes that have ended, or else of the one that was asked
// for longest ago.
func (r *records) keep(made *record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, found := r.of[made.PID]; found {
		r.drop(before)
	}
	if len(r.of) >= r.room {
		var oldest *record
		for _, one := range r.of {
			if checkRunning(one.pidfd) != nil {
				r.drop(one)
			} else if oldest == nil || one.asked < oldest.asked {
				oldest = one
			}
		}
		if len(r.of) >= r.room {
			r.drop(oldest)
		}
	}
	r.times++
	made.asked = r.times
	r.of[made.PID] = made
}

// forget is for a process of which something else is true than was read.
func (r *records) forget(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, found := r.of[pid]; found {
		r.drop(known)
	}
}

// drop is called with the mutex held.
func (r *records) drop(one *record) {
	delete(r.of, one.PID)
	_ = unix.Close(one.pidfd)
}

// lives tells whether the process of a record has not ended, as far as there still is that record.
func (r *records) lives(one *record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[one.PID] == one && checkRunning(one.pidfd) == nil
}

// processOf answers which process a thread was found to belong to, if it still does.
func (r *records) processOf(thread int) (process int, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	process, found = r.threads[thread]
	return process, found && isOf(thread, process)
}

func (r *records) noteThread(thread, process int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.threads) >= mostThreads {
		clear(r.threads)
	}
	r.threads[thread] = process
}
