package fusefs

import (
	"sync"
	"time"
)

// perThread remembers one thing of each thread, from one request of a system call to the next.
type perThread[V any] struct {
	mu       sync.Mutex
	byThread map[uint32]noted[V]
	swept    time.Time
}

type noted[V any] struct {
	value V
	at    time.Time
}

// How long a note is kept at least, and how many there are before old ones are looked for.
const (
	threadMemory = time.Minute
	fewThreads   = 1024
)

func newPerThread[V any]() *perThread[V] {
	return &perThread[V]{byThread: make(map[uint32]noted[V])}
}

// note replaces what was noted of a thread. One that cannot be seen from here (0) is none.
func (t *perThread[V]) note(thread uint32, value V) {
	if thread == 0 {
		return
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byThread[thread] = noted[V]{value, now}
	if len(t.byThread) < fewThreads || now.Sub(t.swept) < threadMemory {
		return
	}
	t.swept = now
	for other, n := range t.byThread {
		if now.Sub(n.at) > threadMemory {
			delete(t.byThread, other)
		}
	}
}

// take answers what was noted of a thread if it is wanted, once, and how long ago that was.
func (t *perThread[V]) take(thread uint32, wanted func(V) bool) (value V, age time.Duration, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, found := t.byThread[thread]
	if !found || !wanted(n.value) {
		return value, 0, false
	}
	delete(t.byThread, thread)
	return n.value, time.Since(n.at), true
}

// get answers what was noted of a thread, and how long ago that was.
func (t *perThread[V]) get(thread uint32) (value V, age time.Duration, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, found := t.byThread[thread]
	return n.value, time.Since(n.at), found
}
