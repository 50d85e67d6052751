package session

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const timeoutSteps = 8

var errNotInTime = fmt.Errorf("the cluster has not answered in time: %w", context.DeadlineExceeded)

// runtimeTimeout is a context with a timeout in running time of this process. A stopped process or a sleeping
// host has sent no requests meanwhile, and loses one step at most.
type runtimeTimeout struct {
	context.Context
	asked     context.Context // the parent
	end       context.CancelCauseFunc
	onTimeout func()
	step      time.Duration

	mu    sync.Mutex
	left  int
	timer *time.Timer
}

// withRuntimeTimeout is like context.WithTimeout. It calls over before the context ends by timeout.
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

// Err wraps context.DeadlineExceeded after the timeout.
func (t *runtimeTimeout) Err() error {
	if err := t.asked.Err(); err != nil { // the parent may compute its error
		return err
	}
	return context.Cause(t.Context)
}

// reopenPause is the pause after a refusal, which usually lasts.
const reopenPause = time.Second
