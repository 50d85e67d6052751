package fusefs

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

// request is one of the kernel's, as far as waiting for its answer goes.
type request struct {
	interrupted <-chan struct{} // closed when its caller gets a signal
	thread      uint32          // its caller
}

// anybody is who asks for what is answered even if he was killed meanwhile.
var anybody request

// killedGrace is what a change still gets whose caller was killed: mostly it is done by then, and known to be.
const killedGrace = time.Second

// callerContext ends when the thread that made a request has been killed, so that nobody will be told the
// result, or a while after that. Until the request is answered such a thread is still there, with the signal pending. Other
// signals end nothing, and neither does a thread that cannot be seen from here (0).
type callerContext struct {
	context.Context // what the rest of it follows from
	end             context.CancelFunc
	request
	grace time.Duration
	late  sync.Once // begins it
}

func whileWaitedFor(by request, grace time.Duration) *callerContext {
	c := &callerContext{request: by, grace: grace}
	c.Context, c.end = context.WithCancel(context.Background())
	if by.interrupted != nil {
		go c.watch()
	}
	return c
}

func (c *callerContext) watch() {
	select {
	case <-c.interrupted:
	case <-c.Done():
		return
	}
	for c.Err() == nil {
		select {
		case <-time.After(killedInterval):
		case <-c.Done():
		}
	}
}

// Err looks now, so that a result which comes just after the signal is not taken for one that was told.
func (c *callerContext) Err() error {
	select {
	case <-c.interrupted:
		if isKilled(c.thread) {
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

// isKilled tells whether SIGKILL is pending for a thread. Every signal that ends a process becomes that for
// each of its threads (proc_pid_status(5): SigPnd).
func isKilled(thread uint32) bool {
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
