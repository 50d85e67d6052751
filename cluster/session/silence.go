package session

import (
	"sync"
)

// silence knows that the cluster does not answer: a call has asked for its whole time, and nothing that anybody asked was
// answered meanwhile. It lasts until something is, which keepalives and the cancels of what was given up go on to ask. Calls
// fail at once for so long. The kernel lets one program at a time create or remove in a directory: did each
// wait for its own time to be over, the last one would wait for all of them.
//
// Commands need a disk of each voter of a majority, other questions its word only. So that commands are not answered
// may be told of them alone.
//
// There is no clock in it: whoever was stopped, or slept, has asked nothing meanwhile.
type silence struct {
	mu      sync.Mutex
	answers [2]uint64 // so far, by what was asked
	silent  [2]bool
}

// asked is what a call needs an answer to.
type asked int

const (
	anything asked = iota
	aCommand
)

// heard answers how much was answered so far.
func (s *silence) heard() [2]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers
}

// answered is told of each answer that a majority stands behind. It answers whether that ends a silence.
func (s *silence) answered(what asked) (ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind := range what + 1 {
		ends = ends || s.silent[kind]
		s.answers[kind]++
		s.silent[kind] = false
	}
	return ends
}

// endured is told of a call whose time is up, and how much had been answered when it began. It answers whether that begins a
// silence.
func (s *silence) endured(since [2]uint64, what asked) (begins bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind := range what + 1 {
		if s.answers[kind] == since[kind] && !s.silent[kind] {
			s.silent[kind], begins = true, true
		}
	}
	return begins
}

func (s *silence) of(what asked) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent[what]
}
