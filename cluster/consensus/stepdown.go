package consensus

import "sync"

// StepDown is the silence that a node keeps that cannot go on: it says nothing to the other nodes and to mounts any more, so
// that they turn to another one. The process may take long to end with a disk that hangs.
type StepDown struct {
	once  sync.Once
	begun chan struct{} // closed
}

// NewStepDown is of a node that speaks.
func NewStepDown() *StepDown { return &StepDown{begun: make(chan struct{})} }

// Begin makes the node silent, for good.
func (s *StepDown) Begin() { s.once.Do(func() { close(s.begun) }) }

// Done is closed when it begins.
func (s *StepDown) Done() <-chan struct{} { return s.begun }

// Begun tells whether the node is silent.
func (s *StepDown) Begun() bool {
	select {
	case <-s.begun:
		return true
	default:
		return false
	}
}
