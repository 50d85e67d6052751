package kernel

import (
	"maps"
	"sync"
)

// Handles give open files and directories the numbers by which the kernel names them. A number is never
// used again.
type Handles[H any] struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]H
}

// NewHandles has none open.
func NewHandles[H any]() *Handles[H] {
	return &Handles[H]{open: make(map[uint64]H)}
}

// Add opens one.
func (t *Handles[H]) Add(h H) (fh uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.open[t.last] = h
	return t.last
}

// Reserve answers the number of one that is to be opened by AddAs.
func (t *Handles[H]) Reserve() (fh uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	return t.last
}

// AddAs opens one with a number.
func (t *Handles[H]) AddAs(fh uint64, h H) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[fh] = h
}

// Get answers one that is open.
func (t *Handles[H]) Get(fh uint64) (h H, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, found = t.open[fh]
	return h, found
}

// AreNone tells whether none is open.
func (t *Handles[H]) AreNone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open) == 0
}

// Remove closes one.
func (t *Handles[H]) Remove(fh uint64) (h H, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, found = t.open[fh]
	delete(t.open, fh)
	return h, found
}

// All answers what is open, and the number that was given last.
func (t *Handles[H]) All() (open map[uint64]H, last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.open), t.last
}

// Restore begins with what was open, and goes on after the number that was given last.
func (t *Handles[H]) Restore(open map[uint64]H, last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.open, open)
	t.last = last
}
