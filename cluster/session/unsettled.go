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

// errLeaving is what calls are told that come while the mount ends.
var errLeaving = errors.New("the mount ends")

// unsettled are the calls whose callers were told that they had failed, while the cluster may still do them. No command
// begins until the cluster knows: what a caller does next must not be undone by what it gave up before, such as a
// lock that it takes by a release that comes late. Nor is anything told that one of them may still change: who was told that a removal failed,
// and looks then whether the name is still there, may remove it once more, and be it another's by then.
type unsettled struct {
	some    atomic.Bool
	mu      sync.Mutex
	calls   []*givenUp
	settled chan struct{} // closed when there is none any more; nil: there is none
	last    time.Duration // when one was settled last, by hostinfo.BootTime; 0: there was none
}

// givenUp is one of them.
type givenUp struct {
	anything bool        // it is not known what it would change
	changes  []ids.Inode // as far as the mount can foresee it
	settled  chan struct{}
}

// begin is told what a call that is given up would change.
func (u *unsettled) begin(anything bool, changes ...ids.Inode) *givenUp {
	call := &givenUp{anything: anything, changes: changes, settled: make(chan struct{})}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.calls) == 0 {
		u.settled = make(chan struct{})
	}
	u.calls = append(u.calls, call)
	u.some.Store(true)
	return call
}

// end is told once the cluster has recorded that nothing comes of a call any more.
func (u *unsettled) end(call *givenUp) {
	u.mu.Lock()
	defer u.mu.Unlock()
	close(call.settled)
	u.last = hostinfo.BootTime()
	u.calls = slices.DeleteFunc(slices.Clone(u.calls), func(other *givenUp) bool { return other == call })
	if len(u.calls) == 0 {
		close(u.settled)
		u.settled = nil
		u.some.Store(false)
	}
}

// latelyFor is more than the cluster takes to tell of what it has done.
const latelyFor = 10 * time.Second

// lately tells whether there is one, or was one a while ago.
func (u *unsettled) lately() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.calls) > 0 || u.last != 0 && hostinfo.BootTime()-u.last < latelyFor
}

func (u *unsettled) any() bool { return u.some.Load() }

// now are those that there are. Nobody changes them.
func (u *unsettled) now() []*givenUp {
	if !u.any() {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.calls
}

// await answers once there is none, or why ctx has ended, or that the mount ends: then the next process settles them.
func (u *unsettled) await(ctx context.Context, ends <-chan struct{}) error {
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
	case <-ends:
		return errLeaving
	}
}
