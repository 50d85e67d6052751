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
	anchor time.Duration // monotonic time of base
	base   int64         // cluster time at the anchor, nanoseconds since the Unix epoch
	ahead  time.Duration // of the median, at base
	peers  map[string]int64
}

// reading has this host's clocks at one moment. Differences are taken on the monotonic clock, so a step
// of the wall clock is an ordinary error of one voter's clock.
type reading struct {
	wall int64         // nanoseconds since the Unix epoch
	mono time.Duration // since some fixed moment
}

var processStart = time.Now()

func readClocks() reading {
	now := time.Now()
	return reading{wall: now.UnixNano(), mono: now.Sub(processStart)}
}

// readingOf returns a function that reads another wall clock; nil: this host's.
func readingOf(wall func() time.Time) func() reading {
	if wall == nil {
		return readClocks
	}
	return func() reading { return reading{wall: wall().UnixNano(), mono: readClocks().mono} }
}

// offset returns how far a wall clock is ahead of this host's monotonic clock.
func (r reading) offset(wall int64) int64 { return wall - int64(r.mono) }

func newClock(now func() reading) *clock {
	return &clock{now: now, peers: make(map[string]int64)}
}

// start begins to lead: time continues from the last stamp in the log.
func (c *clock) start(last int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.anchor, c.base, c.ahead = now.mono, last, 0
	c.slew(now)
}

// Now returns cluster time, nanoseconds since the Unix epoch.
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

// setPeer records the wall clock of a voter.
func (c *clock) setPeer(voter string, wall int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.peers[voter] = now.offset(wall)
	c.slew(now)
}

// keepOnly forgets the clocks of all but the voters.
func (c *clock) keepOnly(voters []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for voter := range c.peers {
		if !slices.Contains(voters, voter) {
			delete(c.peers, voter)
		}
	}
}

// offsets returns how far each known clock is ahead of cluster time, by voter id; own is this node's id.
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

// slew adjusts to the median of the known clocks, this node's own included.
func (c *clock) slew(now reading) {
	at := c.at(now.mono)
	median := c.median(now, at)
	c.base = max(at, median)
	c.anchor = now.mono
	c.ahead = time.Duration(c.base - median)
}

// lateness is how far a clock may be behind cluster time before it counts as wrong.
const lateness = time.Minute

// median returns the lower middle one of an even number of clocks, unless it is far behind cluster time.
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

// reachedWithin is how recent the last contact of a reachable voter is: a leader probes all of them every
// 2 s.
const reachedWithin = 5 * clockInterval

// clockInterval is how often the leader reads the voters' clocks, besides quorum rounds.
const clockInterval = 2 * time.Second
