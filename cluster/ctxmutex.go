package cluster

import "context"

// ctxMutex is a lock for which nobody waits longer than he wants to.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

// Lock waits for the turn, and tells whether it has come before ctx ended.
func (m ctxMutex) Lock(ctx context.Context) bool {
	select {
	case m <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if ctx.Err() != nil {
		m.Unlock()
		return false
	}
	return true
}

// TryLock tells whether nobody else has it.
func (m ctxMutex) TryLock() bool {
	select {
	case m <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock is for who has it.
func (m ctxMutex) Unlock() { <-m }
