package cluster

import "context"

// turn is a lock for which nobody waits longer than he wants to.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn, and tells whether it has come before ctx ended.
func (t turn) take(ctx context.Context) bool {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if ctx.Err() != nil {
		t.pass()
		return false
	}
	return true
}

// takeNow tells whether nobody else has it.
func (t turn) takeNow() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// pass is for who has it.
func (t turn) pass() { <-t }
