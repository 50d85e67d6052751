package cluster

import (
	"slices"
	"sync"
	"time"
)

// clock is cluster time on the leader. It never goes back while this node leads, nor behind the last
// stamp in the log.
type clock struct {
	now func() reading

	mu     sync.Mutex
	anchor time.Duration // monotonic time at which base was right
	base   int64         // cluster time at the anchor, nanoseconds since the Unix epoch
	ahead  time.Duration // by how much base is ahead of the median
	peers  map[string]int64
}

// reading is this host's clocks at one moment. Differences are taken on the monotonic one, so that a
// step of the wall clock is an error of one voter's clock like any other.
type reading struct {
	wall int64         // nanoseconds since the Unix epoch
	mono time.Duration // since some fixed moment
}

var processStart = time.Now()

func readClocks() reading {
	now := time.Now()
	return reading{wall: now.UnixNano(), mono: now.Sub(processStart)}
}

// readingOf answers readings of another wall clock than this host's; nil: of this one.
func readingOf(wall func() time.Time) func() reading {
	if wall == nil {
		return readClocks
	}
	return func() reading { return reading{wall: wall().UnixNano(), mono: readClocks().mono} }
}

// offset is how far a wall clock is ahead of this host's monotonic one.
func (r reading) offset(wall int64) int64 { return wall - int64(r.mono) }

func newClock(now func() reading) *clock {
	return &clock{now: now, peers: make(map[string]int64)}
}

// start begins to lead: time goes on from the last stamp in the log.
func (c *clock) start(last int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.anchor, c.base, c.ahead = now.mono, last, 0
	c.slew(now)
}

// Now is cluster time, nanoseconds since the Unix epoch.
func (c *clock) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(c.now().mono)
}

// at runs at half speed while time is ahead of the median.
func (c *clock) at(mono time.Duration) int64 {
	elapsed := mono - c.anchor
	return c.base + int64(elapsed-min(c.ahead, elapsed/2))
}

// setPeer notes what a voter's wall clock shows now.
func (c *clock) setPeer(voter string, wall int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.peers[voter] = now.offset(wall)
	c.slew(now)
}

// keepOnly drops the clocks of those who are not voters any more.
func (c *clock) keepOnly(voters []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for voter := range c.peers {
		if !slices.Contains(voters, voter) {
			delete(c.peers, voter)
		}
	}
}

// offsets is how far each clock that is known is ahead of cluster time, by the voter's id; own is this node's id.
func (c *clock) offsets(own string) map[string]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	at := c.at(now.mono)
	offsets := map[string]time.Duration{own: time.Duration(now.wall - at)}
	for voter, offset := range c.peers {
		offsets[voter] = time.Duration(int64(now.mono) + offset - at)
	}
	return offsets
}

// slew sets the course to the median of the clocks that are known, this node's own among them.
func (c *clock) slew(now reading) {
	at := c.at(now.mono)
	median := c.median(now, at)
	c.base = max(at, median)
	c.anchor = now.mono
	c.ahead = time.Duration(c.base - median)
}

// lateness is how far a clock can be behind cluster time before it is surely the clock that is wrong.
const lateness = time.Minute

// median takes the lower middle one of an even number of clocks, unless that is far behind cluster time.
func (c *clock) median(now reading, clusterTime int64) int64 {
	offsets := append(make([]int64, 0, len(c.peers)+1), now.offset(now.wall))
	for _, offset := range c.peers {
		offsets = append(offsets, offset)
	}
	slices.Sort(offsets)
	lower, upper := offsets[(len(offsets)-1)/2], offsets[len(offsets)/2]
	if int64(now.mono)+lower < clusterTime-int64(lateness) {
		return int64(now.mono) + upper
	}
	return int64(now.mono) + lower
}

// reachedWithin is how recently a voter has answered that counts as reached: a leader asks all of them every 2 s.
const reachedWithin = 5 * clockInterval

// clockInterval is how often the leader compares the voters' clocks when no reader makes it.
const clockInterval = 2 * time.Second
