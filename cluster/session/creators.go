package session

import (
	"sync"
	"time"

	"lockfs/cluster/process"
)

// creators knows which of the processes that made locks did so for themselves. A process that ends at once, as touch does, made
// its lock for the script that it was started by. Whether it did is judged by having seen it alive some time later: when an end
// is noticed says nothing, as this process may have been stopped in between.
type creators struct {
	mu     sync.Mutex
	lasted map[process.ID]bool // false: it is too early to tell
}

const (
	// creatorAge is how old a process is for sure that was not started to make a lock for another one.
	creatorAge = 3 * time.Second
	// creatorLasts is how long after it made a lock a process is looked for. It is more than what the cluster takes for "at once".
	creatorLasts = 2500 * time.Millisecond
	// creatorsWanted is for how long after the cluster has asked who makes a name everybody's makers are told at once.
	creatorsWanted = 10 * time.Minute
)

func newCreators() *creators { return &creators{lasted: make(map[process.ID]bool)} }

// note notes that a process may have made a lock.
func (c *creators) note(id process.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.lasted[id]; known {
		return
	}
	c.lasted[id] = false
	time.AfterFunc(creatorLasts, func() {
		lasts := process.Alive(id)
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, known := c.lasted[id]; known {
			c.lasted[id] = lasts
		}
	})
}

// ended answers whether a process that has ended had lasted, and forgets it.
func (c *creators) ended(id process.ID) (lasted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lasted = c.lasted[id]
	delete(c.lasted, id)
	return lasted
}
