package session

import (
	"sync"
	"time"

	"lockfs/cluster/process"
)

// makers knows which of the processes that made locks did so for themselves. A process that ends at once, as touch does, made
// its lock for the script that it was started by. Whether it did is judged by having seen it alive some time later: when an end
// is noticed says nothing, as this process may have been stopped in between.
type makers struct {
	mu     sync.Mutex
	lasted map[process.ID]bool // false: it is too early to tell
}

const (
	// makerAge is how old a process is for sure that was not started to make a lock for another one.
	makerAge = 3 * time.Second
	// makerLasts is how long after it made a lock a process is looked for. It is more than what the cluster takes for "at once".
	makerLasts = 2500 * time.Millisecond
	// asksMaker is for how long after the cluster has asked who makes a name everybody's makers are told at once.
	asksMaker = 10 * time.Minute
)

func newMakers() *makers { return &makers{lasted: make(map[process.ID]bool)} }

// meet notes that a process may have made a lock.
func (m *makers) meet(id process.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.lasted[id]; known {
		return
	}
	m.lasted[id] = false
	time.AfterFunc(makerLasts, func() {
		lasts := process.Alive(id)
		m.mu.Lock()
		defer m.mu.Unlock()
		if _, known := m.lasted[id]; known {
			m.lasted[id] = lasts
		}
	})
}

// ended answers whether a process that has ended had lasted, and forgets it.
func (m *makers) ended(id process.ID) (lasted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lasted = m.lasted[id]
	delete(m.lasted, id)
	return lasted
}
