package thread

import "time"

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
