package cluster

import (
	"slices"
	"sync"
	"time"

	"lockfs/raftstore/ids"
)

// lastContact is when the leader last asked each voter that then answered in its term. A leader asks all of them every few seconds.
type lastContact struct {
	mu   sync.Mutex
	term ids.Term
	from time.Time            // when the first was asked in this term
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

// sinceContact are for how long the leader of a term has not heard each of the other voters, by id: one that never answered in
// the term, for as long as others have. A leader that has heard nobody in its term knows nothing.
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

// sinceQuorumContact is for how long a leader has not heard a majority, itself included.
func sinceQuorumContact(silences map[string]time.Duration) time.Duration {
	ages := []time.Duration{0}
	for _, age := range silences {
		ages = append(ages, age)
	}
	slices.Sort(ages)
	return ages[len(ages)/2]
}
