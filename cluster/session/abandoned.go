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

// errClosing is what calls are told that come while the mount ends.
var errClosing = errors.New("the mount ends")

// pendingCalls are the calls whose callers were told that they had failed, while the cluster may still do them. No command
// begins until the cluster knows: what a caller does next must not be undone by what it gave up before, such as a
// lock that it takes by a release that comes late. Nor is anything told that one of them may still change: who was told that a removal failed,
// and looks then whether the name is still there, may remove it once more, and be it another's by then.
type pendingCalls struct {
	some    atomic.Bool
	mu      sync.Mutex
	calls   []*abandonedCall
	settled chan struct{} // closed when there is none any more; nil: there is none
	last    time.Duration // when one was settled last, by hostinfo.BootTime; 0: there was none
}

// abandonedCall is one of them.
type abandonedCall struct {
	anything bool        // it is not known what it would change
	changes  []ids.Inode // as far as the mount can foresee it
	settled  chan struct{}
}

// begin is told what a call that is given up would change.
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

// end is told once the cluster has recorded that nothing comes of a call any more.
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

// latelyFor is more than the cluster takes to tell of what it has done.
const latelyFor = 10 * time.Second

// lately tells whether there is one, or was one a while ago.
func (p *pendingCalls) lately() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls) > 0 || p.last != 0 && hostinfo.BootTime()-p.last < latelyFor
}

func (p *pendingCalls) any() bool { return p.some.Load() }

// list are those that there are. Nobody changes them.
func (p *pendingCalls) list() []*abandonedCall {
	if !p.any() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// cancelUntilDone answers once there is none, or why ctx has ended, or that the mount ends: then the next process settles them.
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
