package lease

import (
	"sync"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

const (
	maxAnswers   = 2048            // that a mount keeps
	maxQuestions = 4096            // questions that it remembers
	useAge       = 3 * Duration    // for which what was used is not given back
	prefetchAge  = Duration / 2    // likewise what came with a command, and was not asked for
	askedAge     = 5 * time.Second // within which a question that comes again is one that was asked for twice
)

// Cache is what a mount keeps of answers. Times are those of its CLOCK_BOOTTIME.
type Cache struct {
	mu         sync.Mutex
	holder     Holder          // whose promises these are
	former     map[Holder]bool // whose they were before: what comes for these is too late
	generation uint64
	retired    uint64 // no generation up to this one counts any more
	until      time.Duration
	answers    map[string]*answer
	byInode    map[ids.Inode]map[string]bool // which answers say something of an inode
	drops      dropLog
	changing   int                      // how many commands are on their way (Change)
	asked      map[string]time.Duration // when each question was asked last
	idle       time.Duration            // from when on it is given back, unless it is used before
}

type answer struct {
	result *storepb.Result
	inodes []ids.Inode
	until  time.Duration // 0: as long as the lease
	isUsed bool          // somebody has asked for it since it came
}

// NewCache makes an empty one.
func NewCache() *Cache {
	c := &Cache{former: make(map[Holder]bool), asked: make(map[string]time.Duration)}
	c.clear()
	return c
}

func (c *Cache) clear() {
	c.answers, c.byInode = make(map[string]*answer), make(map[ids.Inode]map[string]bool)
	c.until = 0
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
	defer c.mu.Unlock()
	c.idle = max(c.idle, at+useAge)
	a.isUsed = true
	c.noteQuestion(question, at) // if the lease lapses, the next one is to come with the next answer
	return a.result
}

// noteQuestion notes when a question was put.
func (c *Cache) noteQuestion(question string, at time.Duration) {
	if _, found := c.asked[question]; !found && len(c.asked) >= maxQuestions {
		clear(c.asked)
	}
	c.asked[question] = at
}

// Keep keeps the answer to a question, which the leader has promised in a generation, for as long as lasts at most if that is not
// 0. It has come now, which may be long after it was asked for: somebody uses it all the same, or may soon if it came with a command. It tells
// whether there is a lease now that was none before: somebody has to have it extended, or say that it is not used, also if nothing is kept.
func (c *Cache) Keep(t Ticket, generation uint64, result *storepb.Result, inodes []ids.Inode, lasts, now time.Duration) (begun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.former[t.holder] {
		return false
	}
	if t.holder != c.holder { // of another session, and perhaps of another cluster, whose generations are its own
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

// Drop forgets what says something of inodes, also if it was asked before and has not come yet.
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

// Remaining is for how long the lease of a generation lasts yet; 0: it is over, or does not count.
func (c *Cache) Remaining(holder Holder, generation uint64, now time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if holder != c.holder || generation != c.generation {
		return 0
	}
	return max(c.until-now, 0)
}

// Extend notes that the leader has extended the lease of a generation, at a request that was sent at that time, with what it began to confirm
// after it had held that for so long, on its own clock. On this one no more than from then until now counts of that.
func (c *Cache) Extend(holder Holder, generation uint64, sent, held, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if holder == c.holder && generation == c.generation && generation > c.retired {
		c.until = max(c.until, sent+min(minElapsed(held), now-sent)+minElapsed(Duration))
	}
}

// Clear drops everything that is held. It answers whose it was and in which generation, which does not count any more; 0: it did not before.
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

// Invalidate is Clear for a generation, of which the leader knows nothing any more.
func (c *Cache) Invalidate(holder Holder, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if holder == c.holder && generation == c.generation {
		c.retired = max(c.retired, generation)
		c.clear()
	}
}

// Lease is whose the lease is that is held; isUsed is false if nobody had a use for it for some time, it is over or no more is kept. A command
// that is on its way has a use for it: its answer may be kept.
func (c *Cache) Lease(now time.Duration) (holder Holder, generation uint64, isUsed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	isUsed = c.changing > 0 || len(c.answers) > 0 && now < c.idle
	return c.holder, c.generation, isUsed && c.generation > c.retired && len(c.answers) < maxAnswers
}
