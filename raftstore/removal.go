package raftstore

import (
	"crypto/rand"
	"encoding/binary"

	"lockfs/raftstore/namespace"
)

// keptRemovals is how many are kept for those who ask for them.
const keptRemovals = 4096

// removals are the last ones that a replica has applied, for mounts that tell their kernels. They are no part
// of the state: who comes late, or asks another replica, has missed some.
type removals struct {
	epoch uint64        // of this FSM: another one counts anew
	last  uint64        // number of the last one, from 1
	news  chan struct{} // closed when there is one more; nil while nobody waits
	ring  [keptRemovals]namespace.Removal
}

func newRemovals() *removals {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return &removals{epoch: binary.LittleEndian.Uint64(random[:])}
}

func (r *removals) add(found []namespace.Removal) {
	for _, removal := range found {
		r.last++
		r.ring[r.last%keptRemovals] = removal
	}
	if len(found) > 0 && r.news != nil {
		close(r.news)
		r.news = nil
	}
}

// since lists those after a number, as far as they are kept.
func (r *removals) since(after uint64) []namespace.Removal {
	if r.last-after > keptRemovals {
		after = r.last - keptRemovals
	}
	var found []namespace.Removal
	for number := after + 1; number <= r.last; number++ {
		found = append(found, r.ring[number%keptRemovals])
	}
	return found
}
