package session

import "sync"

// tasks are what goes on in the background until it is done or the client ends.
type tasks struct {
	mu      sync.Mutex
	running sync.WaitGroup
	over    bool
}

// begin runs one, unless they have ended: calls that were under way may fail after that, and the next process settles them.
func (t *tasks) begin(task func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.running.Go(task)
	}
}

// end waits for those that there are.
func (t *tasks) end() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.running.Wait()
}
