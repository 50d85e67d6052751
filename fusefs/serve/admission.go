package serve

import (
	"bytes"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/hostinfo"
)

// Budgets are how much users may ask for at a time. A call beyond its budget waits for another call of its user to end, and takes a
// goroutine and a buffer only then; so one user's calls never keep those of other users from being handled. A wait (for a lock, or in the
// control directory) beyond its budget is refused with ENOLCK.
type Budgets struct {
	Calls *budget.Pool
	Waits *budget.Pool
	// UserOf returns the user that is charged for a uid.
	UserOf func(uid uint32) budget.User
}

const (
	// queuedCalls bounds how many calls of a user wait for others to end: each is a thread. Then EAGAIN, as from fork(2).
	queuedCalls = 64 << 10
	// queuedBytes bounds the requests of these calls, mostly the data of write(2).
	queuedBytes = 64 << 20
)

// call is a request that is being handled.
type call struct {
	header fuse.InHeader
	raw    []byte // the request, if it may wait; nil: it may not
	back   bool   // it was ended here, to be given back
	given  bool   // another process, or this one before it was stopped, had begun to handle it, or had it in a queue

	interrupted bool // by the kernel
	told        bool // its handler was told to end, to be given back

	charge    charge
	refused   unix.Errno // there is no room for it
	reason    string     // names the budget that has none
	queued    []byte     // the request, while it waits for its turn
	interrupt []byte     // the kernel's interruption of it meanwhile; nil: there was none
	ended     bool       // it was answered meanwhile
	ofQueued  *call      // that this one interrupts
}

// admission is the calls that wait for others of their users to end. The mutex of the server guards it.
type admission struct {
	Budgets
	queues map[budget.User]*queue
	turns  []budget.User // that have a queue, those first that have waited for longest. At most a few have no room for one call more.
}

// queue is the calls of one user that wait, the oldest first.
type queue struct {
	calls []*call
	bytes int
}

// charge is the use of a budget by one call.
type charge struct {
	pool     *budget.Pool
	user     budget.User
	standing budget.Standing
}

func (c *charge) give() {
	if c.pool != nil {
		c.pool.Give(c.user, 1, c.standing)
		c.pool = nil
	}
}

// counts reports whether a request counts as a call. A formality does not, and neither does one that lets go of something; the kernel
// tells no user of these.
func counts(opcode uint32) bool {
	switch opcode {
	case opForget, opBatchForget, opInterrupt, opInit, opRelease, opReleaseDir, opDestroy:
		return false
	}
	return true
}

// admit reports whether a call is to be handled now. Else it waits for its turn, and the request is copied. A call that is refused is to be
// handled, which answers it.
func (a *admission) admit(c *call, request []byte) bool {
	if a.Calls == nil || !counts(c.header.Opcode) {
		return true
	}
	user := a.UserOf(c.header.Uid)
	if c.raw != nil {
		if c.given { // a refusal would leave its request for a lock behind, in the state of the cluster
			c.charge = charge{a.Waits, user, budget.Replacing}
			_ = a.Waits.Take(user, 1, budget.Replacing) // always fits
		} else if err := c.take(a.Waits, user); err != nil {
			c.refused, c.reason = unix.ENOLCK, err.Error()
			if c.header.Opcode == opRead {
				c.refused = unix.EAGAIN
			}
		}
		return true
	}
	waiting := a.queues[user]
	if waiting == nil && c.take(a.Calls, user) == nil {
		return true
	}
	if waiting == nil {
		waiting = new(queue)
		a.queues[user] = waiting
		a.turns = append(a.turns, user)
	}
	if len(waiting.calls) >= queuedCalls || waiting.bytes+len(request) > queuedBytes {
		limit := budget.Limit{Budget: "calls that wait for their turn", Of: "user of the mount", Most: queuedCalls}
		c.refused, c.reason = unix.EAGAIN, limit.Exceeded(user.String()).Error()
		return true
	}
	c.queued = bytes.Clone(request)
	waiting.bytes += len(request)
	waiting.calls = append(waiting.calls, c)
	return false
}

// take charges the budget of a user for a call. The error says that it has no room. Root has a reserve, if it is root of the whole host.
func (c *call) take(pool *budget.Pool, user budget.User) error {
	c.charge = charge{pool, user, budget.Ordinary}
	err := pool.Take(user, 1, budget.Ordinary)
	if err != nil && c.header.Uid == 0 && hostinfo.IsAdministrator(c.header.Pid) {
		c.charge.standing = budget.Privileged
		err = pool.Take(user, 1, budget.Privileged)
	}
	if err != nil {
		c.charge.pool = nil
	}
	return err
}

// next returns the next call for which there is room now; nil: there is none.
func (a *admission) next() *call {
	for range len(a.turns) {
		user := a.turns[0]
		a.turns = a.turns[1:]
		waiting := a.queues[user]
		c := waiting.calls[0]
		goes := c.ended || c.take(a.Calls, user) == nil
		if goes {
			waiting.calls, waiting.bytes = waiting.calls[1:], waiting.bytes-len(c.queued)
		}
		if len(waiting.calls) == 0 {
			delete(a.queues, user)
		} else {
			a.turns = append(a.turns, user)
		}
		if goes {
			return c
		}
	}
	return nil
}

// drain returns the requests that wait for their turn, each with its interruption.
func (a *admission) drain() (requests [][]byte) {
	for _, user := range a.turns {
		for _, c := range a.queues[user].calls {
			if !c.ended {
				requests = append(requests, c.queued)
				if c.interrupt != nil {
					requests = append(requests, c.interrupt)
				}
			}
		}
	}
	a.queues, a.turns = make(map[budget.User]*queue), nil
	return requests
}
