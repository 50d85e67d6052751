package namespace

import (
	"lockfs/raftstore/digest"
)

// Hash is a pure function of the state: nodes that applied the same commands have the same one. It is kept as the state changes, so
// it takes a few milliseconds at most, and knows nothing of memory that has changed by itself.
func (ns *Namespace) Hash() string { return ns.hash(ns.digest.Sum()) }

// Hash is the namespace's, when the snapshot was taken.
func (s *Snapshot) Hash() string { return s.state.hash(s.sum) }

// Recomputed is what the hash should be, by all that is in memory: something has changed there by itself if it is not
// [Snapshot.Hash]. It takes time proportional to the size of the state, and calls pause after every few thousand records.
func (s *Snapshot) Recomputed(pause func()) string {
	var sum digest.Sum
	visited := 0
	digest.Each(func(v digest.Value) bool {
		sum.Add(v.Record())
		if visited++; visited%recomputedAtOnce == 0 {
			pause()
		}
		return true
	}, s.state.all()...)
	return s.state.hash(sum)
}

// recomputedAtOnce is as many records as take some milliseconds.
const recomputedAtOnce = 4096

func (ts *tables) hash(sum digest.Sum) string {
	sum.Add(ts.header())
	return sum.String()
}
