package lease

import (
	"sync"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

const (
	mostAnswers = 2048            // that a mount keeps
	mostAsked   = 4096            // questions that it remembers
	useAge      = 3 * Duration    // after which what was not used is given back
	askedAge    = 5 * time.Second // within which a question that comes again is one that was asked for twice
)

// Cache is what a mount keeps of answers. Times are those of its CLOCK_BOOTTIME.
type Cache struct {
	mu         sync.Mutex
	holder     Holder // whose promises these are
	generation uint64
	spent      uint64 // no generation up to this one counts any more
	until      time.Duration
	answers    map[string]*answer
	about      map[ids.Inode]map[string]bool // which answers say something of an inode
	lost       uint64                        // how often something was dropped
	asked      map[string]time.Duration      // when each question was asked last
	used       time.Duration
}

type answer struct {
	result *storepb.Result
	inodes []ids.Inode
	until  time.Duration // 0: as long as the lease
}

// NewCache makes an empty one.
func NewCache() *Cache {
	c := &Cache{asked: make(map[string]time.Duration)}
	c.clear()
	return c
}

func (c *Cache) clear() {
	c.answers, c.about = make(map[string]*answer), make(map[ids.Inode]map[string]bool)
	c.until = 0
	c.lost++
}

// Get answers a question if its answer is held; nil: it is not. The result is shared: nobody changes it. The clock is read after
// what is kept: whoever is stopped in between finds out.
func (c *Cache) Get(question string, now func() time.Duration) *storepb.Result {
	c.mu.Lock()
	a, until := c.answers[question], c.until
	c.mu.Unlock()
	if a == nil {
		return nil
	}
	if a.until != 0 {
		until = min(until, a.until)
	}
	at := now()
	if at >= until {
		return nil
	}
	c.mu.Lock()
	c.used = max(c.used, at)
	c.mu.Unlock()
	return a.result
}

// Ticket is a question that is on its way.
type Ticket struct {
	question string
	holder   Holder
	lost     uint64
	Sent     time.Duration // when it was, or before
}

// Ask notes that somebody asks a question. He wants a lease if it was asked a short while ago, too.
func (c *Cache) Ask(holder Holder, question string, now time.Duration) (ticket Ticket, wants bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, found := c.asked[question]
	if len(c.asked) >= mostAsked {
		clear(c.asked)
	}
	c.asked[question] = now
	return Ticket{question, holder, c.lost, now}, holder.Session != 0 && found && now-before < askedAge
}

// Keep keeps the answer to a question, which the leader has promised in a generation, for as long as lasts at most if that is not
// 0. It tells whether there is a lease now that was none before: somebody has to have it extended.
func (c *Cache) Keep(t Ticket, generation uint64, result *storepb.Result, inodes []ids.Inode, lasts time.Duration) (begun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.lost != c.lost || len(c.answers) >= mostAnswers {
		return false
	}
	if t.holder != c.holder { // of another session, and perhaps of another cluster, whose generations are its own
		c.clear()
		c.holder, c.generation, c.spent = t.holder, 0, 0
	}
	if generation <= c.spent || generation < c.generation {
		return false
	}
	if begun = len(c.answers) == 0; generation != c.generation {
		c.clear()
		c.generation, begun = generation, true
	}
	a := &answer{result: result, inodes: inodes}
	if lasts != 0 {
		a.until = t.Sent + lasts
	}
	c.forget(t.question)
	c.answers[t.question] = a
	for _, ino := range inodes {
		if c.about[ino] == nil {
			c.about[ino] = make(map[string]bool)
		}
		c.about[ino][t.question] = true
	}
	c.until, c.used = max(c.until, t.Sent+Duration-Margin), max(c.used, t.Sent)
	return begun
}

func (c *Cache) forget(question string) {
	a := c.answers[question]
	if a == nil {
		return
	}
	delete(c.answers, question)
	for _, ino := range a.inodes {
		if delete(c.about[ino], question); len(c.about[ino]) == 0 {
			delete(c.about, ino)
		}
	}
}

// Drop forgets what says something of inodes, and whatever was asked before.
func (c *Cache) Drop(inodes ...ids.Inode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost++
	for _, ino := range inodes {
		for question := range c.about[ino] {
			c.forget(question)
		}
	}
}

// Extend notes that the leader has extended the lease of a generation, with a request that was sent at that time.
func (c *Cache) Extend(holder Holder, generation uint64, sent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if holder == c.holder && generation == c.generation && generation > c.spent {
		c.until = max(c.until, sent+Duration-Margin)
	}
}

// Clear drops everything that is held. The generation that it was held in does not count any more; the answer is false if
// it did not before.
func (c *Cache) Clear() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := c.generation > c.spent
	c.spent = max(c.spent, c.generation)
	c.clear()
	return counted
}

// Lose is Clear for a generation, of which the leader knows nothing any more.
func (c *Cache) Lose(holder Holder, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if holder == c.holder && generation == c.generation {
		c.spent = max(c.spent, generation)
		c.clear()
	}
}

// Lease is whose the lease is that is held; isUsed is false if nobody had a use for it for some time, or no more is kept.
func (c *Cache) Lease(now time.Duration) (holder Holder, generation uint64, isUsed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holder, c.generation, len(c.answers) > 0 && len(c.answers) < mostAnswers && now-c.used < useAge
}
