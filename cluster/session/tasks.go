package session

import "sync"

type tasks struct {
	mu      sync.Mutex
	running sync.WaitGroup
	over    bool
}

// begin starts a task unless the client has ended: late calls may still fail, and the next process cancels
// them.
func (t *tasks) begin(task func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.running.Go(task)
	}
}

// end waits for the running tasks, and prevents new ones.
func (t *tasks) end() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.running.Wait()
}
