package thread

import "time"

// Saved is what was noted of a thread, for the process that serves the mount next.
type Saved[V any] struct {
	Thread uint32
	Value  V
	At     time.Duration // when it was, on the host's CLOCK_BOOTTIME
}

// Save answers all that is noted.
func (t *Notes[V]) Save() (saved []Saved[V]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for thread, n := range t.byThread {
		saved = append(saved, Saved[V]{thread, n.value, n.at})
	}
	return saved
}

// Restore adds what was saved.
func (t *Notes[V]) Restore(saved []Saved[V]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range saved {
		if s.Thread != 0 { // see Note
			t.byThread[s.Thread] = noted[V]{s.Value, s.At}
		}
	}
}
