package lease

import (
	"sync"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

const (
	maxAnswers   = 2048            // kept by a mount
	maxQuestions = 4096            // remembered questions
	useAge       = 3 * Duration    // after use, before the lease is released
	prefetchAge  = Duration / 2    // the same for an unused prefetch
	askedAge     = 5 * time.Second // in which a repeated question counts as asked twice
)

// Cache has a mount's leased answers. Times are on its CLOCK_BOOTTIME.
type Cache struct {
	mu         sync.Mutex
	holder     Holder          // of these leases
	former     map[Holder]bool // earlier holders: an answer for them is too late
	generation uint64
	retired    uint64 // generations up to this one are over
	until      time.Duration
	answers    map[string]*answer
	byInode    map[ids.Inode]map[string]bool // answers by inode
	drops      dropLog
	changing   int                      // commands under way (Change)
	asked      map[string]time.Duration // last time of each question
	idle       time.Duration            // release time, unless it is used before
}

type answer struct {
	result *storepb.Result
	inodes []ids.Inode
	until  time.Duration // 0: as long as the lease
	isUsed bool          // it was asked for since it came
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	c := &Cache{former: make(map[Holder]bool), asked: make(map[string]time.Duration)}
	c.clear()
	return c
}

func (c *Cache) clear() {
	c.answers, c.byInode = make(map[string]*answer), make(map[ids.Inode]map[string]bool)
	c.until = 0
}

// Get returns the leased answer to a question; nil: there is none. Callers must not change it. The clock is
// read after the answer, to detect a pause in between.
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
	defer c.mu.Unlock()
	c.idle = max(c.idle, at+useAge)
	a.isUsed = true
	c.noteQuestion(question, at) // so the next answer comes with a lease, if this one expires
	return a.result
}

// noteQuestion records the time of a question.
func (c *Cache) noteQuestion(question string, at time.Duration) {
	if _, found := c.asked[question]; !found && len(c.asked) >= maxQuestions {
		clear(c.asked)
	}
	c.asked[question] = at
}

// Keep keeps a leased answer, for at most lasts if lasts is not 0. now is the time of its arrival, which may
// be long after the question. Keep reports whether a lease began: then the caller has to renew or release it,
// even if no answer was kept.
func (c *Cache) Keep(t Ticket, generation uint64, result *storepb.Result, inodes []ids.Inode, lasts, now time.Duration) (begun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.former[t.holder] {
		return false
	}
	if t.holder != c.holder { // of another session, perhaps in another cluster with generations of its own
		c.clear()
		c.former[c.holder] = true
		c.holder, c.generation, c.retired = t.holder, 0, 0
	}
	if generation <= c.retired || generation < c.generation {
		return false
	}
	before := c.generation
	if begun = len(c.answers) == 0; generation != before {
		c.clear()
		c.generation, begun = generation, true
	}
	if c.drops.hasAny(inodes, t.Position) || len(c.answers) >= maxAnswers {
		return generation != before
	}
	a := &answer{result: result, inodes: inodes}
	if lasts != 0 {
		a.until = t.Sent + lasts
	}
	c.forget(t.question)
	c.answers[t.question] = a
	for _, ino := range inodes {
		if c.byInode[ino] == nil {
			c.byInode[ino] = make(map[string]bool)
		}
		c.byInode[ino][t.question] = true
	}
	age := useAge
	if t.isCommand {
		age = prefetchAge
	}
	c.until, c.idle = max(c.until, t.Sent+minElapsed(Duration)), max(c.idle, now+age)
	return begun
}

func (c *Cache) forget(question string) {
	a := c.answers[question]
	if a == nil {
		return
	}
	delete(c.answers, question)
	for _, ino := range a.inodes {
		if delete(c.byInode[ino], question); len(c.byInode[ino]) == 0 {
			delete(c.byInode, ino)
		}
	}
}

// Drop forgets all answers about inodes, and answers to questions under way.
func (c *Cache) Drop(inodes ...ids.Inode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(inodes)
}

func (c *Cache) drop(inodes []ids.Inode) {
	c.drops.add(inodes)
	for _, ino := range inodes {
		for question := range c.byInode[ino] {
			c.forget(question)
		}
	}
}

// Remaining returns how long the lease of a generation lasts; 0: it is over.
func (c *Cache) Remaining(holder Holder, generation uint64, now time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if holder != c.holder || generation != c.generation {
		return 0
	}
	return max(c.until-now, 0)
}

// Extend records an extension. The leader got the request, held it for held on its own clock, and then began
// to confirm. On this clock, no more than now minus sent counts of held.
func (c *Cache) Extend(holder Holder, generation uint64, sent, held, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if holder == c.holder && generation == c.generation && generation > c.retired {
		c.until = max(c.until, sent+min(minElapsed(held), now-sent)+minElapsed(Duration))
	}
}

// Clear drops all answers. It returns the holder and the ended generation; 0: it had ended before.
func (c *Cache) Clear() (holder Holder, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation > c.retired {
		generation = c.generation
	}
	c.retired = max(c.retired, c.generation)
	c.clear()
	return c.holder, generation
}

// Invalidate is Clear for a generation lost by the leader.
func (c *Cache) Invalidate(holder Holder, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if holder == c.holder && generation == c.generation {
		c.retired = max(c.retired, generation)
		c.clear()
	}
}

// Lease returns the present lease. isUsed is false if it was not used for some time, is over, or the cache is
// full. A command in progress uses it: its answer may be kept.
func (c *Cache) Lease(now time.Duration) (holder Holder, generation uint64, isUsed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	isUsed = c.changing > 0 || len(c.answers) > 0 && now < c.idle
	return c.holder, c.generation, isUsed && c.generation > c.retired && len(c.answers) < maxAnswers
}
