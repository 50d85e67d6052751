package cluster

import (
	"slices"
	"sync"
	"time"

	"lockfs/raftstore/ids"
)

// lastContact records when the leader last sent a probe to each voter that then answered in its term. A
// leader probes all voters every few seconds.
type lastContact struct {
	mu   sync.Mutex
	term ids.Term
	from time.Time            // of the first probe in this term
	at   map[string]time.Time // by id
}

func (c *lastContact) note(voter string, term ids.Term, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if term > c.term {
		c.term, c.from, c.at = term, asked, make(map[string]time.Time)
	}
	if term == c.term && asked.After(c.at[voter]) {
		c.at[voter] = asked
	}
}

// sinceContact returns, by id, the time since the last contact of each other voter in a term, or since
// the first contact of any voter if there was none. It is empty if the leader had no contact in its term.
func (c *lastContact) sinceContact(term ids.Term, now time.Time, others []string) map[string]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	silences := make(map[string]time.Duration, len(others))
	if c.term != term {
		return silences
	}
	for _, voter := range others {
		at, answered := c.at[voter]
		if !answered {
			at = c.from
		}
		silences[voter] = now.Sub(at)
	}
	return silences
}

// sinceQuorumContact returns how long a leader has had no contact with a majority, itself included.
func sinceQuorumContact(silences map[string]time.Duration) time.Duration {
	ages := []time.Duration{0}
	for _, age := range silences {
		ages = append(ages, age)
	}
	slices.Sort(ages)
	return ages[len(ages)/2]
}
