package session

import (
	"context"
	"sync"
	"sync/atomic"
)

// unsettled counts the calls whose callers were told that they had failed, while the cluster may still do them. Nothing else
// begins until the cluster knows, and nothing is answered: what a caller does next must not be undone by what it gave up before, such as a
// lock that it takes by a release that comes late, nor what it sees be of before that. Where no majority can be reached that costs nothing, since
// neither gets anywhere.
type unsettled struct {
	mu      sync.Mutex
	calls   int
	settled atomic.Pointer[chan struct{}] // closed when there is none any more; nil: there is none
}

func (u *unsettled) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls++; u.calls == 1 {
		settled := make(chan struct{})
		u.settled.Store(&settled)
	}
}

func (u *unsettled) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls--; u.calls == 0 {
		close(*u.settled.Swap(nil))
	}
}

func (u *unsettled) any() bool { return u.settled.Load() != nil }

// await answers once there is none, or why ctx has ended.
func (u *unsettled) await(ctx context.Context) error {
	settled := u.settled.Load()
	if settled == nil {
		return nil
	}
	select {
	case <-*settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
