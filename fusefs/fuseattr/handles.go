package fuseattr

import (
	"maps"
	"sync"
)

// Handles number open files and directories for the kernel. They never reuse a number.
type Handles[H any] struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]H
}

// NewHandles returns no handles.
func NewHandles[H any]() *Handles[H] {
	return &Handles[H]{open: make(map[uint64]H)}
}

// Add adds a handle under a new number.
func (t *Handles[H]) Add(h H) (fh uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.open[t.last] = h
	return t.last
}

// Reserve returns a number for AddAs.
func (t *Handles[H]) Reserve() (fh uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	return t.last
}

// AddAs adds a handle under a number.
func (t *Handles[H]) AddAs(fh uint64, h H) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[fh] = h
}

// Get returns a handle.
func (t *Handles[H]) Get(fh uint64) (h H, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, found = t.open[fh]
	return h, found
}

// AreNone reports whether no handle is open.
func (t *Handles[H]) AreNone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open) == 0
}

// Remove removes a handle.
func (t *Handles[H]) Remove(fh uint64) (h H, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, found = t.open[fh]
	delete(t.open, fh)
	return h, found
}

// All returns the open handles and the last number.
func (t *Handles[H]) All() (open map[uint64]H, last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.open), t.last
}

// Restore adds open handles, and continues after the last number.
func (t *Handles[H]) Restore(open map[uint64]H, last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.open, open)
	t.last = last
}
