package history

import (
	"slices"
	"syscall"
)

// lockOwner is who has locks: an open file description, or a process until it closes the file.
type lockOwner struct {
	number int
	kind   Kind
	first  *LockCall // of all that concern it
	closed *LockCall // that gave its locks up; nil: none
	gone   bool      // so surely that when closed returned
	unsure bool      // the outcome of one of its calls is not known
	over   bool      // a request of it was given up: no descriptor shows any more that it has what it had

	has      [places]bool           // what it took and has not released
	through  map[int]*binding       // the descriptors by which it took that
	bindings []*binding             // of all times
	during   map[*LockCall]*binding // in which a call that concerns it was
	bound    map[*LockCall]int64    // since when its descriptor is surely of one session; Never: it may be of any

	latest int64 // when all that it had is gone
}

// binding is a descriptor from when its owner takes something through it until the owner has nothing. What is taken through it is of one
// session, in which all is done through it meanwhile. Other descriptors, and the same one later, may be of another session,
// and to succeed through them shows nothing of this one.
type binding struct {
	number   rune      // among those of its owner
	first    *LockCall // that took something
	proof    *LockCall // by which the session was alive as late as is known
	lost     bool      // its session had ended before the owner's close
	stays    bool      // what was taken in it stays for a lock delay when its session ends
	earliest int64     // when what was taken in it can have gone
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
					through: make(map[int]*binding), during: make(map[*LockCall]*binding), bound: make(map[*LockCall]int64),
				}
				owners[key] = o
			}
			o.bound[call] = boundSince(owners, call, nil)
			o.learn(call, key, h)
			if call.Kind == Close && key.kind == Posix && i > 0 && i+1 < len(calls) {
				o.gone = h.droppedAll(calls[i-1], call, calls[i+1]) && o.isOfSession(calls[i+1].Opened, boundSince(owners, calls[i+1], o))
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
	done := own && call.locks() && call.proves() && call.Errno == 0
	if done && call.Mode != NoLock && o.through[call.Opened] == nil {
		o.bind(call)
	}
	within := o.through[call.Opened]
	o.during[call] = within
	switch {
	case call.proves() && !o.over:
		if within != nil {
			within.proof = call
		}
	case call.Kind == Close && o.closed == nil:
		o.closed = call
	case own && h.inDoubt(call):
		o.unsure = true
		o.over = o.over || call.Errno == syscall.EIO
	}
	if o.closed == nil && within != nil && h.showsLoss(call) {
		within.lost = true
	}
	if done {
		o.note(call)
	}
}

func (o *lockOwner) bind(call *LockCall) {
	b := &binding{number: rune(len(o.bindings)), first: call, proof: call}
	o.through[call.Opened] = b
	o.bindings = append(o.bindings, b)
}

// note follows what an owner takes and releases.
func (o *lockOwner) note(call *LockCall) {
	for at := call.Range.First; at <= call.Range.Last; at++ {
		o.has[at] = call.Mode != NoLock
	}
	if !slices.Contains(o.has[:], true) {
		clear(o.through)
	}
}

// boundSince answers since when the descriptor of a call is surely of one session, as somebody has something through it. What a process
// has closed counts until the next call only: with what is released through the descriptor after that it may go to another session.
func boundSince(owners map[ownerKey]*lockOwner, call *LockCall, closing *lockOwner) int64 {
	since := int64(never)
	for key, o := range owners {
		if b := o.through[call.Opened]; key.client == call.Client && b != nil && (o.closed == nil || o == closing) {
			since = min(since, b.first.End)
		}
	}
	return since
}

// isOfSession tells whether all that a process has is of the session that a descriptor has been of since some time: a host is in one
// at a time.
func (o *lockOwner) isOfSession(opened int, since int64) bool {
	for through, b := range o.through {
		if through != opened && b.proof.Start < since {
			return false
		}
	}
	return since != never
}

// showsLoss tells whether a call shows that the session of its descriptor had ended. EIO is answered too when the
// cluster could not be asked in time.
func (h *LockHistory) showsLoss(c *LockCall) bool {
	return c.End != 0 && c.Orphaned() && (c.Errno != syscall.EIO || c.End-c.Start < int64(h.OpTimeout))
}

// droppedAll tells whether a close is known to have been heard of by the cluster when it returned: it waits for
// that as long as for any other call, which is not at all while the cluster does not answer. That takes the time of a call
// after the last answer, so the call before must have had one. If the session had been lost, the locks would stay for the lock
// delay; a call after it through the other descriptor, which was open before, shows that it was not (see isOfSession).
func (h *LockHistory) droppedAll(before, c, next *LockCall) bool {
	return before.Client == c.Client && before.locks() && before.proves() &&
		c.Errno == 0 && c.End != 0 && c.End-before.Start < int64(h.OpTimeout) &&
		next.Client == c.Client && next.proves() && next.Opened < c.Seq && next.Opened != c.Opened
}

// inDoubt tells whether it is not known if a lock was taken or released.
func (h *LockHistory) inDoubt(c *LockCall) bool {
	// Who is interrupted while the cluster cannot be asked may have the lock for a moment, or until the session ends. He is told late, or
	// at once if others have waited for nothing before.
	unasked := c.Errno == syscall.EINTR && (c.End-c.Start >= int64(h.Prompt) || h.maybeSilent(c))
	return c.locks() && (c.Orphaned() || c.Errno == syscall.ETIMEDOUT || unasked || c.Lapsed)
}

// maybeSilent tells whether the cluster may not have answered the host of a call then: another call there had waited in vain by then, or
// failed at once because others had.
func (h *LockHistory) maybeSilent(c *LockCall) bool {
	patience := int64(h.OpTimeout)
	return slices.ContainsFunc(h.unanswered[c.Host], func(other *LockCall) bool {
		return min(other.End, other.Start+patience) <= c.End && c.Start <= other.End+patience
	})
}

func (h *LockHistory) isUnanswered(c *LockCall) bool {
	return c.End != 0 && (c.Errno == syscall.ETIMEDOUT || c.End-c.Start >= int64(h.OpTimeout))
}

// judge works out when the locks can have gone: with the close, or a lock delay after the session ended, which was
// alive at the last proof.
func (o *lockOwner) judge(h *LockHistory) {
	o.latest = never
	if o.gone && !o.unsure {
		o.latest = o.closed.End
	}
	for _, b := range o.bindings {
		b.earliest, b.stays = b.proof.Start+int64(h.LockDelay), h.LockDelay > 0
		switch {
		case b.lost:
			o.latest = never
		case o.closed != nil:
			b.earliest = min(b.earliest, o.closed.Start)
		}
	}
}

// mayBeTold tells whether a test may have answered the pid that it did for a lock of this owner. It is that of the
// process on the same host, else 0, as of sessions that have ended; or -1 where an open file description locks or
// asks (a local disk differs a little from FUSE in that). To the owner itself only what is in such a session is another one's.
func (o *lockOwner) mayBeTold(a *lockAction, mayBeLost bool) bool {
	test := a.call
	switch {
	case test.Got.Pid == -1:
		return o.kind == OFD || test.Kind == TestOFD
	case o == a.owner:
		return test.Got.Pid == 0
	case test.Host != o.first.Host:
		return test.Got.Pid == 0
	}
	return test.Got.Pid == o.first.Pid || test.Got.Pid == 0 && mayBeLost
}
