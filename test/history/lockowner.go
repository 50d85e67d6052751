package history

import (
	"slices"
	"syscall"
)

// lockOwner is an owner of locks: an open file description, or a process until it closes the file.
type lockOwner struct {
	number int
	kind   Kind
	first  *LockCall // of all calls about it
	closed *LockCall // that ended its locks; nil: none
	gone   bool      // its locks were certainly gone when closed returned
	unsure bool      // one of its calls has an unknown outcome
	over   bool      // a request of it was abandoned: no descriptor proves its locks any more

	has      [places]bool           // its locks so far
	through  map[int]*binding       // the descriptors of its locks
	bindings []*binding             // of all times
	during   map[*LockCall]*binding // binding during each call about it
	bound    map[*LockCall]int64    // time from which the descriptor certainly belongs to one session; Never: it may belong to any

	latest int64 // latest end of all its locks
}

// binding is a descriptor, from the first lock taken through it until the owner has no lock. All calls
// through it in this time belong to one session. Other descriptors, and the same one later, may belong to
// another session, so their success proves nothing about this one.
type binding struct {
	number   rune      // among the owner's
	first    *LockCall // that took a lock
	proof    *LockCall // latest proof that its session was alive
	lost     bool      // its session had ended before the owner's close
	stays    bool      // its locks stay for a lock delay after the end of the session
	earliest int64     // earliest end of its locks
}

type ownerKey struct {
	client int
	kind   Kind
	which  int // Opened, or Era of Posix
}

// keysOf returns the owners concerned by a call.
func keysOf(c *LockCall, space []Kind) []ownerKey {
	keys := []ownerKey{{c.Client, space[0], c.Opened}}
	if len(space) > 1 {
		keys = append(keys, ownerKey{c.Client, Posix, c.Era})
	}
	return keys
}

// keyOf returns the owner of a call.
func keyOf(c *LockCall) ownerKey {
	switch c.Kind {
	case Posix, TestPosix:
		return ownerKey{c.Client, Posix, c.Era}
	case TestOFD:
		return ownerKey{c.Client, OFD, c.Opened}
	}
	return ownerKey{c.Client, c.Kind, c.Opened}
}

// ownersOf returns the owners in one space. The calls of each client are in order.
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

// note records the owner's locks and releases.
func (o *lockOwner) note(call *LockCall) {
	for at := call.Range.First; at <= call.Range.Last; at++ {
		o.has[at] = call.Mode != NoLock
	}
	if !slices.Contains(o.has[:], true) {
		clear(o.through)
	}
}

// boundSince returns the time from which the descriptor of a call certainly belongs to one session, because a
// lock was taken through it. A closed descriptor of a process counts only until the next call: a later
// release through it may belong to another session.
func boundSince(owners map[ownerKey]*lockOwner, call *LockCall, closing *lockOwner) int64 {
	since := int64(never)
	for key, o := range owners {
		if b := o.through[call.Opened]; key.client == call.Client && b != nil && (o.closed == nil || o == closing) {
			since = min(since, b.first.End)
		}
	}
	return since
}

// isOfSession reports whether all locks of a process belong to the session of a descriptor since some time. A
// host has one session at a time.
func (o *lockOwner) isOfSession(opened int, since int64) bool {
	for through, b := range o.through {
		if through != opened && b.proof.Start < since {
			return false
		}
	}
	return since != never
}

// showsLoss reports whether a call shows that the session of its descriptor had ended. EIO may also mean that
// the cluster did not answer in time.
func (h *LockHistory) showsLoss(c *LockCall) bool {
	return c.End != 0 && c.Orphaned() && (c.Errno != syscall.EIO || c.End-c.Start < int64(h.OpTimeout))
}

// droppedAll reports whether the cluster certainly knew of a close when it returned. The close waits for the
// cluster like any other call, but not at all while the cluster does not answer. This begins one call's time
// after the last answer, so the call before must have had an answer. If the session had been lost, the locks
// would stay for the lock delay. A later call through the other descriptor, open before, shows that it was
// not (see isOfSession).
func (h *LockHistory) droppedAll(before, c, next *LockCall) bool {
	return before.Client == c.Client && before.locks() && before.proves() &&
		c.Errno == 0 && c.End != 0 && c.End-before.Start < int64(h.OpTimeout) &&
		next.Client == c.Client && next.proves() && next.Opened < c.Seq && next.Opened != c.Opened
}

// inDoubt reports whether it is unknown if a lock was taken or released.
func (h *LockHistory) inDoubt(c *LockCall) bool {
	// A wait interrupted while the cluster does not answer may have the lock for a moment, or until the
	// session ends. It returns late, or at once if earlier calls have timed out.
	unasked := c.Errno == syscall.EINTR && (c.End-c.Start >= int64(h.Prompt) || h.maybeSilent(c))
	return c.locks() && (c.Orphaned() || c.Errno == syscall.ETIMEDOUT || unasked || c.Lapsed)
}

// maybeSilent reports whether the cluster may not have answered the host of a call: another call there had
// timed out by then, or had failed at once for that reason.
func (h *LockHistory) maybeSilent(c *LockCall) bool {
	patience := int64(h.OpTimeout)
	return slices.ContainsFunc(h.unanswered[c.Host], func(other *LockCall) bool {
		return min(other.End, other.Start+patience) <= c.End && c.Start <= other.End+patience
	})
}

func (h *LockHistory) isUnanswered(c *LockCall) bool {
	return c.End != 0 && (c.Errno == syscall.ETIMEDOUT || c.End-c.Start >= int64(h.OpTimeout))
}

// judge sets when the locks can have ended: with the close, or one lock delay after the end of the session,
// which was alive at the last proof.
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

// mayBeTold reports whether a test may have returned its pid for a lock of this owner. The pid is that of a
// process on the same host, otherwise 0, also for ended sessions. It is -1 if an open file description locks
// or asks (a local disk differs a little from FUSE here). For the owner itself, only a lock in an ended
// session counts as another owner's.
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
