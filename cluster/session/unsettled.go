package session

import (
	"context"
	"sync"
)

// givenUp counts the calls whose callers were told that they had failed, while the cluster may still do them. Nothing else
// begins until the cluster knows: what a caller does next must not be undone by what it gave up before, such as a
// lock that it takes by a release that comes late. That costs nothing, since neither gets anywhere without a majority.
type givenUp struct {
	mu      sync.Mutex
	calls   int
	settled chan struct{} // closed when there is none any more; nil: there is none
}

func (g *givenUp) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls++; g.calls == 1 {
		g.settled = make(chan struct{})
	}
}

func (g *givenUp) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls--; g.calls == 0 {
		close(g.settled)
		g.settled = nil
	}
}

func (g *givenUp) any() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls > 0
}

// await answers once there is none, or why ctx has ended.
func (g *givenUp) await(ctx context.Context) error {
	g.mu.Lock()
	settled := g.settled
	g.mu.Unlock()
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
