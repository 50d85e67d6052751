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

// killedInterval is the pause between checks of an interrupted thread: the kernel reports only the first
// signal, which need not be the killing one.
const killedInterval = 20 * time.Millisecond

// Request is a request of the kernel whose caller waits for an answer. The zero Request never ends.
type Request struct {
	Interrupted <-chan struct{} // closed at a signal to the caller
	Thread      uint32          // the caller
}

// NewRequest returns a Request.
func NewRequest(interrupted <-chan struct{}, thread uint32) Request {
	return Request{interrupted, thread}
}

// UntilInterrupted returns a context that ends with the first signal to a caller, or with end. The caller
// must call end.
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

// WhileWaitedFor returns a context that ends after a kill of the caller and a grace period, or with end. The
// caller must call end. The answer of a killed thread reaches no program, but until then the thread exists,
// with the signal pending. Other signals end nothing, and neither does an invisible thread (0).
func (r Request) WhileWaitedFor(grace time.Duration) (ctx context.Context, end context.CancelFunc) {
	c := &callerContext{Request: r, grace: grace}
	c.Context, c.end = context.WithCancel(context.Background())
	return c, c.end
}

// callerContext is the context of [Request.WhileWaitedFor].
type callerContext struct {
	context.Context // the parent of its results
	end             context.CancelFunc
	Request
	grace   time.Duration
	late    sync.Once // starts the grace period
	watched sync.Once
}

// Done watches the caller from now on. A request without a wait starts no goroutine, which would wake another
// thread.
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

// Err checks now, so that a result just after the signal does not count as delivered.
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

// IsKilled reports whether SIGKILL is pending for a thread. Every signal that ends a process becomes SIGKILL
// for each of its threads (proc_pid_status(5): SigPnd).
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
