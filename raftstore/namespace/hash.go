package namespace

import (
	"lockfs/raftstore/digest"
)

// Hash is a pure function of the state: nodes with the same commands have the same hash. It follows each
// change of the state, so it takes a few milliseconds at most and misses memory errors.
func (ns *Namespace) Hash() string { return ns.hash(ns.digest.Sum()) }

// Hash returns the namespace's hash at the time of the snapshot.
func (s *Snapshot) Hash() string { return s.state.hash(s.sum) }

// Recomputed returns the hash of the records in memory. If it differs from [Snapshot.Hash], memory has
// changed by itself. It takes time in proportion to the state, and calls pause after every few thousand
// records.
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

// Rehash sets the hash to that of the records in memory, and reports whether they were equal. Otherwise
// memory changed by itself, here or on the host that wrote a restored state.
func (ns *Namespace) Rehash() (was bool) {
	sum := ns.Snapshot().state.recomputed(func() {})
	was = sum == ns.digest.Sum()
	ns.digest.Restored(sum)
	return was
}

// recomputedAtOnce records take some milliseconds.
const recomputedAtOnce = 4096

func (ts *tables) hash(sum digest.Sum) string {
	sum.Add(ts.header())
	return sum.String()
}
