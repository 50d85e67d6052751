package history

import (
	"slices"
	"syscall"

	"lockfs/raftstore/linear"
)

// lockOwner is who has locks: an open file description, or a process until it closes the file.
type lockOwner struct {
	number int
	kind   Kind
	first  *LockCall // of all that concern it
	proof  *LockCall // by which its session was alive as late as is known; nil: none
	closed *LockCall // that gave its locks up; nil: none
	taken  bool      // it had something
	gone   bool      // so surely that when closed returned
	unsure bool      // the outcome of one of its calls is not known
	lost   bool      // its session had ended before closed
	over   bool      // a request of it was given up: no descriptor shows any more that it has what it had

	has     [places]bool       // what it took and has not released
	through []int              // descriptors by which it took that: to succeed through others shows nothing of its session
	proofs  map[int]*LockCall  // the last of each of them
	afresh  map[*LockCall]bool // its calls through others, which go on in another session when its own has ended

	earliest, latest int64 // when what it had can have gone
}

type ownerKey struct {
	client int
	kind   Kind
	which  int // Opened, or Era of Posix
}

// keysOf answers the owners that a call says something about.
func keysOf(c *LockCall, space []Kind) []ownerKey {
	keys := []ownerKey{{c.Client, space[0], c.Opened}}
	if len(space) > 1 {
		keys = append(keys, ownerKey{c.Client, Posix, c.Era})
	}
	return keys
}

// keyOf answers the owner that a call is of.
func keyOf(c *LockCall) ownerKey {
	switch c.Kind {
	case Posix, TestPosix:
		return ownerKey{c.Client, Posix, c.Era}
	case TestOFD:
		return ownerKey{c.Client, OFD, c.Opened}
	}
	return ownerKey{c.Client, c.Kind, c.Opened}
}

// ownersOf finds the owners in one space. The calls of each client are in order.
func (h *LockHistory) ownersOf(calls []*LockCall, space []Kind) map[ownerKey]*lockOwner {
	owners := make(map[ownerKey]*lockOwner)
	for i, call := range calls {
		for _, key := range keysOf(call, space) {
			o, found := owners[key]
			if !found {
				o = &lockOwner{
					number: len(owners), kind: key.kind, first: call,
					proofs: make(map[int]*LockCall), afresh: make(map[*LockCall]bool),
				}
				owners[key] = o
			}
			o.learn(call, key, h)
			if call.Kind == Close && key.kind == Posix && i > 0 && i+1 < len(calls) {
				o.gone = h.droppedAll(calls[i-1], call, calls[i+1]) && someHoldsThrough(owners, calls[i+1])
			}
		}
	}
	for _, o := range owners {
		o.judge(h)
	}
	return owners
}

func (o *lockOwner) learn(call *LockCall, key ownerKey, h *LockHistory) {
	own := keyOf(call) == key
	switch {
	case call.proves() && !o.over:
		if own && !slices.Contains(o.through, call.Opened) {
			o.afresh[call] = true
		}
		if own && call.Errno == 0 && call.locks() {
			o.note(call)
		}
		if slices.Contains(o.through, call.Opened) {
			o.proofs[call.Opened] = call
			o.proof = o.oldestProof()
		}
	case call.Kind == Close && o.closed == nil:
		o.closed = call
	case own && h.inDoubt(call):
		o.unsure = true
		o.over = o.over || call.Errno == syscall.EIO
	}
	if o.closed == nil && h.showsLoss(call) && slices.Contains(o.through, call.Opened) {
		o.lost = true
	}
}

// note follows what an owner takes and releases.
func (o *lockOwner) note(call *LockCall) {
	for at := call.Range.First; at <= call.Range.Last; at++ {
		o.has[at] = call.Mode != NoLock
	}
	switch {
	case call.Mode != NoLock:
		o.taken = true
		o.through = append(o.through, call.Opened)
	case !slices.Contains(o.has[:], true):
		o.through = nil
		clear(o.proofs)
	}
}

// oldestProof counts if locks were taken through several descriptors: nobody knows which of them are of the same session.
func (o *lockOwner) oldestProof() (oldest *LockCall) {
	for _, proof := range o.proofs {
		if oldest == nil || proof.Start < oldest.Start {
			oldest = proof
		}
	}
	return oldest
}

// someHoldsThrough tells whether a client surely has locks through the descriptor of a call.
func someHoldsThrough(owners map[ownerKey]*lockOwner, call *LockCall) bool {
	for key, o := range owners {
		if key.client == call.Client && slices.Contains(o.through, call.Opened) {
			return true
		}
	}
	return false
}

// showsLoss tells whether a call shows that the session of its descriptor had ended. EIO is answered too when the
// cluster could not be asked in time.
func (h *LockHistory) showsLoss(c *LockCall) bool {
	return c.End != 0 && c.Orphaned() && (c.Errno != syscall.EIO || c.End-c.Start < int64(h.OpTimeout))
}

// droppedAll tells whether a close is known to have been heard of by the cluster when it returned: it waits for
// that as long as for any other call, which is not at all while the cluster does not answer. That takes the time of a call
// after the last answer, so the call before must have had one. If the session had been lost, the locks would stay for the lock
// delay; a call after it through the other descriptor, which was open before, shows that it was not.
func (h *LockHistory) droppedAll(before, c, next *LockCall) bool {
	return before.Client == c.Client && before.locks() && before.proves() &&
		c.Errno == 0 && c.End != 0 && c.End-before.Start < int64(h.OpTimeout) &&
		next.Client == c.Client && next.proves() && next.Opened < c.Seq && next.Opened != c.Opened
}

// inDoubt tells whether it is not known if a lock was taken or released.
func (h *LockHistory) inDoubt(c *LockCall) bool {
	// Who is interrupted while the cluster cannot be asked may have the lock for a moment, or until the session ends.
	late := c.Errno == syscall.EINTR && c.End-c.Start >= int64(h.Prompt)
	return c.locks() && (c.Orphaned() || c.Errno == syscall.ETIMEDOUT || late)
}

// judge works out when the locks can have gone: with the close, or a lock delay after the session ended, which was
// alive at the last proof.
func (o *lockOwner) judge(h *LockHistory) {
	o.earliest, o.latest = o.first.Start, linear.Never
	if o.proof != nil {
		o.earliest = o.proof.Start + int64(h.LockDelay)
	}
	if o.closed == nil || o.lost {
		return
	}
	o.earliest = min(o.earliest, o.closed.Start)
	if o.gone && !o.unsure {
		o.latest = o.closed.End
	}
}

// mayBeTold tells whether a test may have answered the pid that it did for a lock of this owner. It is that of the
// process on the same host, else 0, as of sessions that have ended; or -1 where an open file description locks or
// asks (a local disk differs a little from FUSE in that).
func (o *lockOwner) mayBeTold(test *LockCall) bool {
	switch {
	case test.Got.Pid == -1:
		return o.kind == OFD || test.Kind == TestOFD
	case test.Host != o.first.Host:
		return test.Got.Pid == 0
	}
	mayBeLost := o.proof == nil || o.proof.Start < test.End
	return test.Got.Pid == o.first.Pid || test.Got.Pid == 0 && mayBeLost
}

// mayBeTaken tells whether a test of the owner's own may have taken what it has for another one's: that session may have ended.
func (o *lockOwner) mayBeTaken(test *LockCall) bool {
	return test.Got.Pid == 0 && (o.proof == nil || o.proof.Start < test.Start)
}
