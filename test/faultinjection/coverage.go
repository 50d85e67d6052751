package faultinjection

import (
	"fmt"
	"strings"
	"sync"
)

// Moments at which a strike may begin, besides during other strikes.
const (
	MomentQuiet    = "nothing else"
	MomentElection = "election"
	MomentSnapshot = "snapshot"
	MomentHandOver = "hand-over"
	MomentHeld     = "lock held"
	MomentWaiting  = "lock waited for"
	MomentSilent   = "session given up"
	MomentAlarm    = "alarm"
	MomentStarting = "daemon starting"
	MomentInstall  = "snapshot installed"
	MomentMembers  = "members change"
	MomentRenewal  = "certificate renewed"
	MomentRevoked  = "lease dropped"
)

// Moments are all of them.
var Moments = []string{
	MomentQuiet, MomentElection, MomentSnapshot, MomentHandOver, MomentHeld, MomentWaiting, MomentSilent, MomentAlarm, MomentStarting,
	MomentInstall, MomentMembers, MomentRenewal, MomentRevoked,
}

// Coverage counts strikes by kind and moment.
type Coverage struct {
	mu    sync.Mutex
	count map[[2]string]int
	begun map[string]int
	left  map[string]int // strikes without a free target
}

// NewCoverage returns empty counts.
func NewCoverage() *Coverage {
	return &Coverage{count: make(map[[2]string]int), begun: make(map[string]int), left: make(map[string]int)}
}

// note counts a strike at some moments; none: a quiet one.
func (c *Coverage) note(kind string, moments []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun[kind]++
	if len(moments) == 0 {
		moments = []string{MomentQuiet}
	}
	for _, moment := range moments {
		c.count[[2]string{kind, moment}]++
	}
}

func (c *Coverage) leaveOut(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left[kind]++
}

// Counted returns the counts of each kind: begun, left out, and begun at each moment or during another kind.
func (c *Coverage) Counted() (begun, left map[string]int64, pairs map[string]map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pairs = make(map[string]map[string]int64)
	for pair, n := range c.count {
		if pairs[pair[0]] == nil {
			pairs[pair[0]] = make(map[string]int64)
		}
		pairs[pair[0]][pair[1]] = int64(n)
	}
	return wide(c.begun), wide(c.left), pairs
}

func wide(counts map[string]int) map[string]int64 {
	all := make(map[string]int64, len(counts))
	for name, n := range counts {
		all[name] = int64(n)
	}
	return all
}

// Pairs returns the number of covered pairs of a kind and a moment or other kind, and of all pairs.
func (c *Coverage) Pairs() (covered, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.count), len(kinds) * (len(Moments) + len(kinds))
}

// Strikes returns the numbers of strikes begun and left out.
func (c *Coverage) Strikes() (begun, left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.begun {
		begun += n
	}
	for _, n := range c.left {
		left += n
	}
	return begun, left
}

// String returns a table: strikes by kind and moment, and the number of other kinds in progress.
func (c *Coverage) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%-33s%6s%6s", "", "begun", "left")
	for _, moment := range Moments {
		fmt.Fprintf(&b, "%20s", moment)
	}
	fmt.Fprintf(&b, "%17s\n", "during others")
	for _, k := range kinds {
		fmt.Fprintf(&b, "%-33s%6d%6d", k.name, c.begun[k.name], c.left[k.name])
		for _, moment := range Moments {
			fmt.Fprintf(&b, "%20d", c.count[[2]string{k.name, moment}])
		}
		during := 0
		for _, other := range kinds {
			if c.count[[2]string{k.name, other.name}] > 0 {
				during++
			}
		}
		fmt.Fprintf(&b, "%11d of %2d\n", during, len(kinds))
	}
	return b.String()
}
