package cluster

import (
	"slices"
	"sync"
	"time"

	"lockfs/raftstore/ids"
)

// heard is when the leader last asked each voter that then answered in its term. A leader asks all of them every few seconds.
type heard struct {
	mu   sync.Mutex
	term ids.Term
	from time.Time            // when the first was asked in this term
	at   map[string]time.Time // by id
}

func (h *heard) note(voter string, term ids.Term, asked time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if term > h.term {
		h.term, h.from, h.at = term, asked, make(map[string]time.Time)
	}
	if term == h.term && asked.After(h.at[voter]) {
		h.at[voter] = asked
	}
}

// silences are for how long the leader of a term has not heard each of the other voters, by id: one that never answered in
// the term, for as long as others have. A leader that has heard nobody in its term knows nothing.
func (h *heard) silences(term ids.Term, now time.Time, others []string) map[string]time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	silences := make(map[string]time.Duration, len(others))
	if h.term != term {
		return silences
	}
	for _, voter := range others {
		at, answered := h.at[voter]
		if !answered {
			at = h.from
		}
		silences[voter] = now.Sub(at)
	}
	return silences
}

// unconfirmed is for how long a leader has not heard a majority, itself included.
func unconfirmed(silences map[string]time.Duration) time.Duration {
	ages := []time.Duration{0}
	for _, age := range silences {
		ages = append(ages, age)
	}
	slices.Sort(ages)
	return ages[len(ages)/2]
}
