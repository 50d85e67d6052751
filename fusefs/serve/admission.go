package serve

import (
	"bytes"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/hostinfo"
)

// Budgets limit the concurrent requests of users. A call beyond its budget waits for the end of another call
// of its user, and takes a goroutine and a buffer only then. So one user's calls never block those of other
// users. A wait (for a lock, or in the control directory) beyond its budget gets ENOLCK or EAGAIN.
type Budgets struct {
	Calls *budget.Pool
	Waits *budget.Pool
	// UserOf returns the user charged for a uid.
	UserOf func(uid uint32) budget.User
}

const (
	// queuedCalls limits the queue of a user's calls: each is a thread. A further call gets EAGAIN, as from
	// fork(2).
	queuedCalls = 64 << 10
	// queuedBytes limits the requests of these calls, mostly the data of write(2).
	queuedBytes = 64 << 20
)

// call is a request under way.
type call struct {
	header fuse.InHeader
	raw    []byte // the request, if it may wait; else nil
	back   bool   // to be given back, without an answer
	given  bool   // another process, or this one before a stop, had begun or queued it

	interrupted bool  // by the kernel
	told        bool  // its handler has the interrupt, of the kernel or of a stop
	interrupts  *call // the call interrupted by this one, which is the kernel's message

	charge    charge
	refused   unix.Errno // the error for lack of room
	reason    string     // names the full budget
	queued    []byte     // the request, while it waits in the queue
	interrupt []byte     // the kernel's interruption meanwhile; nil: none
	ended     bool       // answered meanwhile
	ofQueued  *call      // the queued call interrupted by this one
}

// admission has the queues of calls. The server's mutex guards it.
type admission struct {
	Budgets
	queues map[budget.User]*queue
	turns  []budget.User // users with a queue, longest wait first; few of them lack room for one more call
}

// queue is the waiting calls of one user, oldest first.
type queue struct {
	calls []*call
	bytes int
}

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

// counts reports whether a request counts as a call. Formalities and releases do not: the kernel has no user
// for these.
func counts(opcode uint32) bool {
	switch opcode {
	case opForget, opBatchForget, opInterrupt, opInit, opRelease, opReleaseDir, opDestroy:
		return false
	}
	return true
}

// admit reports whether to handle a call now. Otherwise it queues a copy of the request. It returns true for
// a refused call, whose handler sends the refusal.
func (a *admission) admit(c *call, request []byte) bool {
	if a.Calls == nil || !counts(c.header.Opcode) {
		return true
	}
	user := a.UserOf(c.header.Uid)
	if c.raw != nil {
		if c.given { // a refusal would leave its lock request in the cluster's state
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

// take charges a user's budget for a call. It returns an error without room. Root of the whole host has a
// reserve.
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

// next returns the next call with room; nil: none.
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

// drain returns the queued requests, each with its interruption.
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
