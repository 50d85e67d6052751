package fusefs

import "sync"

// handles gives open files and directories the numbers by which the kernel names them. A number is never
// used again.
type handles[H any] struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]H
}

func newHandles[H any]() *handles[H] {
	return &handles[H]{open: make(map[uint64]H)}
}

func (t *handles[H]) add(h H) (fh uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.open[t.last] = h
	return t.last
}

func (t *handles[H]) get(fh uint64) (h H, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, found = t.open[fh]
	return h, found
}

// areNone tells whether none is open.
func (t *handles[H]) areNone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open) == 0
}

func (t *handles[H]) remove(fh uint64) (h H, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, found = t.open[fh]
	delete(t.open, fh)
	return h, found
}
