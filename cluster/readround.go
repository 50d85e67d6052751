package cluster

import (
	"context"
	"errors"
	"sync"
)

var errNoQuorum = errors.New("no majority confirmed that this node still leads")

// quorumRounds are rounds of probes. Each proves that no newer leader had been elected when it began.
// Readers that arrive during a round share the next one.
type quorumRounds struct {
	round func() error // asks the voters; errNoQuorum

	mu      sync.Mutex
	running bool
	next    *roundResult // has not begun
}

type roundResult struct {
	done chan struct{}
	err  error // valid once done is closed
}

// confirm runs or joins a round that begins after the call.
func (r *quorumRounds) confirm(ctx context.Context) error {
	r.mu.Lock()
	if !r.running {
		r.running = true
		r.mu.Unlock()
		defer r.ended()
		return r.round()
	}
	if r.next == nil {
		r.next = &roundResult{done: make(chan struct{})}
	}
	result := r.next
	r.mu.Unlock()
	select {
	case <-result.done:
		return result.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended starts the next round if readers wait for one.
func (r *quorumRounds) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := r.next
	if result == nil {
		r.running = false
		return
	}
	r.next = nil
	go func() {
		defer r.ended()
		result.err = r.round()
		close(result.done)
	}()
}
