package cluster

import "context"

// ctxMutex is a mutex whose Lock can be cancelled.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

// Lock reports whether it got the mutex before ctx ended.
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

// TryLock reports whether the mutex was free.
func (m ctxMutex) TryLock() bool {
	select {
	case m <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock is for the holder.
func (m ctxMutex) Unlock() { <-m }
