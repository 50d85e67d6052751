package consensus

import "sync"

// StepDown silences a node that cannot continue: it sends nothing to other nodes and mounts, so that they
// turn to another one. With a hanging disk the process may take long to end.
type StepDown struct {
	once  sync.Once
	begun chan struct{} // closed once begun
}

// NewStepDown returns one before its beginning.
func NewStepDown() *StepDown { return &StepDown{begun: make(chan struct{})} }

// Begin makes the node silent, for good.
func (s *StepDown) Begin() { s.once.Do(func() { close(s.begun) }) }

// Done returns a channel, closed when it begins.
func (s *StepDown) Done() <-chan struct{} { return s.begun }

// Begun reports whether it has begun.
func (s *StepDown) Begun() bool {
	select {
	case <-s.begun:
		return true
	default:
		return false
	}
}
