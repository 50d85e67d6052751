package session

import (
	"context"
	"sync"
)

// unsettled counts the calls whose callers were told that they had failed, while the cluster may still do them. Nothing else
// begins until the cluster knows: what a caller does next must not be undone by what it gave up before, such as a
// lock that it takes by a release that comes late. That costs nothing, since neither gets anywhere without a majority.
type unsettled struct {
	mu      sync.Mutex
	calls   int
	settled chan struct{} // closed when there is none any more; nil: there is none
}

func (u *unsettled) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls++; u.calls == 1 {
		u.settled = make(chan struct{})
	}
}

func (u *unsettled) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls--; u.calls == 0 {
		close(u.settled)
		u.settled = nil
	}
}

func (u *unsettled) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.calls > 0
}

// await answers once there is none, or why ctx has ended.
func (u *unsettled) await(ctx context.Context) error {
	u.mu.Lock()
	settled := u.settled
	u.mu.Unlock()
	if settled == nil {
		return nil
	}
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
