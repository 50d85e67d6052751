package session

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// timeoutSteps is in how many steps the time of a call is counted.
const timeoutSteps = 8

var errNotInTime = fmt.Errorf("the cluster has not answered in time: %w", context.DeadlineExceeded)

// runtimeTimeout is a context that ends once a call has waited long enough. What counts is the time in which this process ran: one
// that was stopped, or whose host slept, has asked nobody meanwhile, and loses a step at most.
type runtimeTimeout struct {
	context.Context
	asked     context.Context // what it was made from
	end       context.CancelCauseFunc
	onTimeout func()
	step      time.Duration

	mu    sync.Mutex
	left  int
	timer *time.Timer
}

// withRuntimeTimeout is like context.WithTimeout. over is called before the context ends because its time is up.
func withRuntimeTimeout(asked context.Context, limit time.Duration, over func()) (context.Context, context.CancelFunc) {
	p := &runtimeTimeout{asked: asked, onTimeout: over, step: limit / timeoutSteps, left: timeoutSteps}
	p.Context, p.end = context.WithCancelCause(asked)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.step, p.tick)
	return p, p.cancel
}

func (t *runtimeTimeout) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left--; t.Context.Err() != nil {
		return
	}
	if t.left > 0 {
		t.timer.Reset(t.step)
		return
	}
	t.onTimeout()
	t.end(errNotInTime)
}

func (t *runtimeTimeout) cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.end(context.Canceled)
}

// Err wraps context.DeadlineExceeded if the time was up.
func (t *runtimeTimeout) Err() error {
	if err := t.asked.Err(); err != nil { // which may look anew
		return err
	}
	return context.Cause(t.Context)
}

// reopenPause is for a cluster that says no: it will for a while.
const reopenPause = time.Second
