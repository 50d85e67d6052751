package thread

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// killedInterval is how often the thread of an interrupted request is looked at: the kernel tells of the
// first signal only, and that need not be the one that kills.
const killedInterval = 20 * time.Millisecond

// Request is one of the kernel's, as far as waiting for its answer goes. The zero one is of somebody who waits whatever becomes of him.
type Request struct {
	Interrupted <-chan struct{} // closed when its caller gets a signal
	Thread      uint32          // its caller
}

// NewRequest is for what the kernel has asked.
func NewRequest(interrupted <-chan struct{}, thread uint32) Request {
	return Request{interrupted, thread}
}

// UntilInterrupted answers a context that ends with the first signal that a caller gets, or with end, which has to be called.
func UntilInterrupted(interrupted <-chan struct{}) (ctx context.Context, end context.CancelFunc) {
	ctx, end = context.WithCancel(context.Background())
	if interrupted != nil {
		go func() {
			select {
			case <-interrupted:
				end()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, end
}

// WhileWaitedFor answers a context that ends when the caller has been killed, so that nobody will be told the result, or a while
// after that, or with end, which has to be called. Until the request is answered such a thread is still there, with the signal
// pending. Other signals end nothing, and neither does a thread that cannot be seen from here (0).
func (r Request) WhileWaitedFor(grace time.Duration) (ctx context.Context, end context.CancelFunc) {
	c := &callerContext{Request: r, grace: grace}
	c.Context, c.end = context.WithCancel(context.Background())
	return c, c.end
}

// callerContext is that of [Request.WhileWaitedFor].
type callerContext struct {
	context.Context // what the rest of it follows from
	end             context.CancelFunc
	Request
	grace   time.Duration
	late    sync.Once // begins it
	watched sync.Once
}

// Done has the caller watched from now on: what is answered without waiting starts no goroutine, which would wake another thread.
func (c *callerContext) Done() <-chan struct{} {
	if c.Interrupted != nil {
		c.watched.Do(func() { go c.watch() })
	}
	return c.Context.Done()
}

func (c *callerContext) watch() {
	select {
	case <-c.Interrupted:
	case <-c.Context.Done():
		return
	}
	for c.Err() == nil {
		select {
		case <-time.After(killedInterval):
		case <-c.Context.Done():
		}
	}
}

// Err looks now, so that a result which comes just after the signal is not taken for one that was told.
func (c *callerContext) Err() error {
	select {
	case <-c.Interrupted:
		if IsKilled(c.Thread) {
			c.killed()
		}
	default:
	}
	return c.Context.Err()
}

func (c *callerContext) killed() {
	if c.grace == 0 {
		c.end()
		return
	}
	c.late.Do(func() { time.AfterFunc(c.grace, c.end) })
}

// IsKilled reports whether SIGKILL is pending for a thread. Every signal that ends a process becomes that for
// each of its threads (proc_pid_status(5): SigPnd).
func IsKilled(thread uint32) bool {
	if thread == 0 {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return false
	}
	const field = "\nSigPnd:"
	at := bytes.Index(status, []byte(field))
	if at < 0 {
		return false
	}
	mask, _, _ := bytes.Cut(status[at+len(field):], []byte("\n"))
	pending, err := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64)
	return err == nil && pending&(1<<(unix.SIGKILL-1)) != 0
}
