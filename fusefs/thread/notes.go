package thread

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/hostinfo"
)

// Notes keep one note for each thread, between the requests of a system call. A thread in a system call has
// not ended. So there are only a few more notes than such threads.
type Notes[V any] struct {
	useful   time.Duration // 0: until the thread's end
	hasEnded func(thread uint32) bool

	mu       sync.Mutex
	byThread map[uint32]noted[V]
	sweepAt  int // number of notes for the next sweep
}

type noted[V any] struct {
	value V
	at    time.Duration // CLOCK_BOOTTIME, valid across processes and suspends
}

func (n noted[V]) age() time.Duration { return hostinfo.BootTime() - n.at }

// fewThreads is the number of notes without a sweep.
const fewThreads = 1024

// NewNotes returns notes with a useful life; 0: until the thread's end.
func NewNotes[V any](useful time.Duration) *Notes[V] {
	return &Notes[V]{
		useful: useful, hasEnded: HasEnded, byThread: make(map[uint32]noted[V]), sweepAt: fewThreads,
	}
}

// HasEnded reports whether a thread has certainly ended. It returns false if the number is in use again.
func HasEnded(thread uint32) bool { return unix.Kill(int(thread), 0) == unix.ESRCH }

// Note replaces the note of a thread, except for an invisible one (0).
func (t *Notes[V]) Note(thread uint32, value V) {
	if thread == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byThread[thread] = noted[V]{value, hostinfo.BootTime()}
	if len(t.byThread) >= t.sweepAt {
		t.sweep()
	}
}

func (t *Notes[V]) sweep() {
	left := make(map[uint32]noted[V]) // a map never shrinks
	for thread, n := range t.byThread {
		if t.useful == 0 && !t.hasEnded(thread) || n.age() < t.useful {
			left[thread] = n
		}
	}
	t.byThread, t.sweepAt = left, max(fewThreads, 2*len(left))
}

// Drop removes the note of a thread.
func (t *Notes[V]) Drop(thread uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byThread, thread)
}

// Take removes and returns the note of a thread, if it is wanted, and its age.
func (t *Notes[V]) Take(thread uint32, wanted func(V) bool) (value V, age time.Duration, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, found := t.byThread[thread]
	if !found || !wanted(n.value) {
		return value, 0, false
	}
	delete(t.byThread, thread)
	return n.value, n.age(), true
}

// Get returns the note of a thread and its age.
func (t *Notes[V]) Get(thread uint32) (value V, age time.Duration, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, found := t.byThread[thread]
	return n.value, n.age(), found
}

// Saved is a note of a thread, for the mount's next process.
type Saved[V any] struct {
	Thread uint32
	Value  V
	At     time.Duration // time of the note, on the host's CLOCK_BOOTTIME
}

// Save returns all notes.
func (t *Notes[V]) Save() (saved []Saved[V]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for thread, n := range t.byThread {
		saved = append(saved, Saved[V]{thread, n.value, n.at})
	}
	return saved
}

// Restore adds saved notes.
func (t *Notes[V]) Restore(saved []Saved[V]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range saved {
		if s.Thread != 0 { // see Note
			t.byThread[s.Thread] = noted[V]{s.Value, s.At}
		}
	}
}
