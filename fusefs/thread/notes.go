package thread

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/hostinfo"
)

// Notes remember one thing of each thread, from one request of a system call to the next. A thread that is in a system call
// has not ended, so no more is kept than there are such threads, but for a few.
type Notes[V any] struct {
	useful   time.Duration // 0: for as long as the thread lives
	hasEnded func(thread uint32) bool

	mu       sync.Mutex
	byThread map[uint32]noted[V]
	sweepAt  int // when there are so many, those are dropped that are of no use any more
}

type noted[V any] struct {
	value V
	at    time.Duration // CLOCK_BOOTTIME, which goes on in another process, and while the host sleeps
}

func (n noted[V]) age() time.Duration { return hostinfo.BootTime() - n.at }

// fewThreads may be remembered for longer than they have to.
const fewThreads = 1024

// NewNotes remembers things that are of use for so long; 0: for as long as the thread lives.
func NewNotes[V any](useful time.Duration) *Notes[V] {
	return &Notes[V]{
		useful: useful, hasEnded: HasEnded, byThread: make(map[uint32]noted[V]), sweepAt: fewThreads,
	}
}

// HasEnded tells of threads that have surely ended. One whose number is another's by now is taken for alive.
func HasEnded(thread uint32) bool { return unix.Kill(int(thread), 0) == unix.ESRCH }

// Note replaces what was noted of a thread. One that cannot be seen from here (0) is none.
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
	left := make(map[uint32]noted[V]) // a map never gets smaller
	for thread, n := range t.byThread {
		if t.useful == 0 && !t.hasEnded(thread) || n.age() < t.useful {
			left[thread] = n
		}
	}
	t.byThread, t.sweepAt = left, max(fewThreads, 2*len(left))
}

// Drop forgets what was noted of a thread.
func (t *Notes[V]) Drop(thread uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byThread, thread)
}

// Take answers what was noted of a thread if it is wanted, once, and how long ago that was.
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

// Get answers what was noted of a thread, and how long ago that was.
func (t *Notes[V]) Get(thread uint32) (value V, age time.Duration, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, found := t.byThread[thread]
	return n.value, n.age(), found
}
