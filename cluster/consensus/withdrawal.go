package consensus

import "sync"

// Withdrawal is the silence that a node keeps that cannot go on: it says nothing to the other nodes and to mounts any more, so
// that they turn to another one. The process may take long to end with a disk that hangs.
type Withdrawal struct {
	once  sync.Once
	begun chan struct{} // closed
}

// NewWithdrawal is of a node that speaks.
func NewWithdrawal() *Withdrawal { return &Withdrawal{begun: make(chan struct{})} }

// Begin makes the node silent, for good.
func (w *Withdrawal) Begin() { w.once.Do(func() { close(w.begun) }) }

// Done is closed when it begins.
func (w *Withdrawal) Done() <-chan struct{} { return w.begun }

// Begun tells whether the node is silent.
func (w *Withdrawal) Begun() bool {
	select {
	case <-w.begun:
		return true
	default:
		return false
	}
}
