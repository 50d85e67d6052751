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
	return s.state.hash(s.state.recomputed(pause))
}

func (ts *tables) recomputed(pause func()) (sum digest.Sum) {
	visited := 0
	digest.Each(func(v digest.Value) bool {
		sum.Add(v.Record())
		if visited++; visited%recomputedAtOnce == 0 {
			pause()
		}
		return true
	}, ts.all()...)
	return sum
}

// Rehash makes the hash that of what is in memory, and tells whether it was that before. Else something had changed by itself: here, or,
// if the state was restored, where that was written.
func (ns *Namespace) Rehash() (was bool) {
	sum := ns.Snapshot().state.recomputed(func() {})
	was = sum == ns.digest.Sum()
	ns.digest.Restored(sum)
	return was
}

// recomputedAtOnce is as many records as take some milliseconds.
const recomputedAtOnce = 4096

func (ts *tables) hash(sum digest.Sum) string {
	sum.Add(ts.header())
	return sum.String()
}
