package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
)

var errClosing = errors.New("the mount ends")

// pendingCalls are abandoned calls: their callers got an error, and the cluster may still apply them. No
// command begins until the cluster has recorded their cancellation. Otherwise an abandoned release could
// remove the lock of a later acquire.
//
// Queries also wait if an abandoned call can change their answer. Otherwise a caller could see a name after a
// failed removal, remove it again, and so remove another owner's lock.
type pendingCalls struct {
	some    atomic.Bool
	mu      sync.Mutex
	calls   []*abandonedCall
	settled chan struct{} // closed when no call is left; nil: there is none
	last    time.Duration // when the last call was settled, by hostinfo.BootTime; 0: never
}

type abandonedCall struct {
	anything bool        // the changed inodes are unknown
	changes  []ids.Inode // inodes which the mount predicts
	settled  chan struct{}
}

// begin adds an abandoned call and its possible changes.
func (p *pendingCalls) begin(anything bool, changes ...ids.Inode) *abandonedCall {
	call := &abandonedCall{anything: anything, changes: changes, settled: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) == 0 {
		p.settled = make(chan struct{})
	}
	p.calls = append(p.calls, call)
	p.some.Store(true)
	return call
}

// end removes a call after the cluster has recorded its cancellation.
func (p *pendingCalls) end(call *abandonedCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(call.settled)
	p.last = hostinfo.BootTime()
	p.calls = slices.DeleteFunc(slices.Clone(p.calls), func(other *abandonedCall) bool { return other == call })
	if len(p.calls) == 0 {
		close(p.settled)
		p.settled = nil
		p.some.Store(false)
	}
}

// latelyFor is longer than the cluster needs to report a committed removal.
const latelyFor = 10 * time.Second

// lately reports whether a call is pending, or was within latelyFor.
func (p *pendingCalls) lately() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls) > 0 || p.last != 0 && hostinfo.BootTime()-p.last < latelyFor
}

func (p *pendingCalls) any() bool { return p.some.Load() }

// list returns the pending calls. The slice is read-only.
func (p *pendingCalls) list() []*abandonedCall {
	if !p.any() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// cancelUntilDone waits until no call is pending. It returns the error of ctx, or errClosing when the mount
// ends: the next process then cancels the calls.
func (p *pendingCalls) cancelUntilDone(ctx context.Context, ends <-chan struct{}) error {
	p.mu.Lock()
	settled := p.settled
	p.mu.Unlock()
	if settled == nil {
		return nil
	}
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-ends:
		return errClosing
	}
}
