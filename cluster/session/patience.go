package session

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// patienceSteps is in how many steps the time of a call is counted.
const patienceSteps = 8

var errNotInTime = fmt.Errorf("the cluster has not answered in time: %w", context.DeadlineExceeded)

// patience is a context that ends once a call has waited long enough. What counts is the time in which this process ran: one
// that was stopped, or whose host slept, has asked nobody meanwhile, and loses a step at most.
type patience struct {
	context.Context
	asked context.Context // what it was made from
	end   context.CancelCauseFunc
	over  func()
	step  time.Duration

	mu    sync.Mutex
	left  int
	timer *time.Timer
}

// withPatience is like context.WithTimeout. over is called before the context ends because its time is up.
func withPatience(asked context.Context, limit time.Duration, over func()) (context.Context, context.CancelFunc) {
	p := &patience{asked: asked, over: over, step: limit / patienceSteps, left: patienceSteps}
	p.Context, p.end = context.WithCancelCause(asked)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.step, p.count)
	return p, p.cancel
}

func (p *patience) count() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left--; p.Context.Err() != nil {
		return
	}
	if p.left > 0 {
		p.timer.Reset(p.step)
		return
	}
	p.over()
	p.end(errNotInTime)
}

func (p *patience) cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.end(context.Canceled)
}

// Err wraps context.DeadlineExceeded if the time was up.
func (p *patience) Err() error {
	if err := p.asked.Err(); err != nil { // which may look anew
		return err
	}
	return context.Cause(p.Context)
}

// reopenPause is for a cluster that says no: it will for a while.
const reopenPause = time.Second
