package session

import (
	"sync"
	"time"

	"lockfs/cluster/process"
)

// creators records which processes create locks for themselves. A short-lived process, such as touch, creates
// its lock for the script which started it. The test is whether the process still runs some time later. The
// time of its reported end is no proof: this process may have been stopped in between.
type creators struct {
	mu     sync.Mutex
	lasted map[process.ID]bool // false: too early to know
}

const (
	// creatorAge is the age of a process which surely was not started to create a lock for another one.
	creatorAge = 3 * time.Second
	// creatorLasts is the delay of the check after a lock's creation. It is longer than the cluster's limit
	// for "at once".
	creatorLasts = 2500 * time.Millisecond
	// creatorsWanted is how long commands include the lineage of creators after a NEED_LINEAGE result.
	creatorsWanted = 10 * time.Minute
)

func newCreators() *creators { return &creators{lasted: make(map[process.ID]bool)} }

// note records a process which may have created a lock.
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

// ended reports whether a process outlasted creatorLasts, and forgets the process.
func (c *creators) ended(id process.ID) (lasted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lasted = c.lasted[id]
	delete(c.lasted, id)
	return lasted
}
