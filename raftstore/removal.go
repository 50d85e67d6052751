package raftstore

import (
	"crypto/rand"
	"encoding/binary"

	"lockfs/raftstore/namespace"
)

// keptRemovals is the number of removals kept for mounts.
const keptRemovals = 4096

// removals are the last removals applied by a replica, for mounts to report to their kernels. They are not
// part of the state. A late mount, or one with another replica, misses some.
type removals struct {
	epoch uint64        // of this FSM; each FSM counts from the start
	last  uint64        // number of the last one, from 1
	news  chan struct{} // closed after the next removal; nil without a waiter
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
