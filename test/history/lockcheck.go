package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

// LockHistory is several clients' calls on locks.
type LockHistory struct {
	Calls     []*LockCall
	OpTimeout time.Duration // of the mounts
	Prompt    time.Duration // an interrupted wait that returns later may have the lock, in a session that ends
	DisksFill bool          // servers may have run out of space and refused commands
	LockDelay time.Duration // least time before other owners get the locks of an ended session

	unanswered map[string][]*LockCall // by host
}

// lockSpaces are the independent kinds of locks. The first of each belongs to an open file description.
var lockSpaces = [][]Kind{{Flock}, {OFD, Posix, TestOFD, TestPosix}}

// Check returns nil if there is an order. within limits the search for each file and space.
func (h *LockHistory) Check(within time.Duration) error {
	type file struct{ dir, name string }
	byFile := make(map[file][]*LockCall)
	var failed, refused []error
	h.unanswered = make(map[string][]*LockCall)
	for _, call := range h.Calls {
		if h.isUnanswered(call) {
			h.unanswered[call.Host] = append(h.unanswered[call.Host], call)
		}
		if !h.allowed(call) {
			refused = append(refused, fmt.Errorf("%w: an error that nobody should get: %v", ErrImpossible, call))
		}
		f := file{call.Dir, call.File}
		byFile[f] = append(byFile[f], call)
	}
	for f, calls := range byFile {
		slices.SortFunc(calls, func(a, b *LockCall) int {
			return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Seq, b.Seq))
		})
		for _, space := range lockSpaces {
			if err := search(lockModel, h.operations(calls, space), within); err != nil {
				failed = append(failed, fmt.Errorf("%s/%s, %v: %w%s", f.dir, f.name, space, err, h.interrupted(calls, space)))
			}
		}
	}
	return errors.Join(append(failed, refused...)...)
}

// interrupted returns the interrupted waits without an operation: in the order, they never had the lock.
func (h *LockHistory) interrupted(calls []*LockCall, space []Kind) string {
	first := slices.MinFunc(calls, func(a, b *LockCall) int { return cmp.Compare(a.Start, b.Start) }).Start
	var b strings.Builder
	for _, c := range calls {
		if slices.Contains(space, c.Kind) && c.Errno == syscall.EINTR && len(h.verbsOf(c)) == 0 {
			fmt.Fprintf(&b, "\n  no lock %10.6f %11.6f %v", float64(c.Start-first)/1e9, float64(c.End-first)/1e9, c)
		}
	}
	return b.String()
}

// allowed reports whether a call may fail with this error. EDEADLK is not allowed: clients have several
// threads, so they are never known to wait in a cycle.
func (h *LockHistory) allowed(c *LockCall) bool {
	switch c.Errno {
	case 0, syscall.ETIMEDOUT:
		return true
	case syscall.EAGAIN:
		return !c.Wait && c.Mode != NoLock
	case syscall.EINTR:
		return c.Wait
	case syscall.ENOSPC:
		return h.DisksFill && (c.Mode != NoLock || c.Kind == Write)
	}
	return c.Orphaned()
}

// operations turns the calls on one file into operations on one space of locks.
func (h *LockHistory) operations(calls []*LockCall, space []Kind) []porcupine.Operation {
	owners := h.ownersOf(calls, space)
	var operations []porcupine.Operation
	add := func(call *LockCall, verb lockVerb, o *lockOwner) {
		end := call.End
		if end == 0 {
			end = never
		}
		operations = append(operations, porcupine.Operation{
			ClientId: call.Client, Input: &lockAction{call, verb, o}, Call: call.Start, Return: end,
		})
	}
	for _, call := range calls {
		if slices.Contains(space, call.Kind) {
			o := owners[keyOf(call)]
			for _, verb := range h.verbsOf(call) {
				add(call, verb, o)
			}
		}
	}
	for _, o := range owners {
		for _, b := range o.bindings {
			add(b.proof, seeSession, o)
		}
	}
	return operations
}

// verbsOf returns the parts of a call, each at a moment of its own.
func (h *LockHistory) verbsOf(c *LockCall) []lockVerb {
	if c.tests() {
		switch {
		case c.Errno != 0:
			return nil
		case c.Got.Mode == NoLock:
			return []lockVerb{seeNoLock}
		}
		return []lockVerb{seeLock}
	}
	var verbs []lockVerb
	if c.Kind == Flock && c.Mode != NoLock {
		verbs = append(verbs, doConvert)
	}
	switch {
	case h.inDoubt(c):
		return []lockVerb{doDoubt}
	case c.Errno == syscall.EINTR, c.Errno == syscall.ENOSPC:
		return verbs
	case c.Errno == syscall.EAGAIN:
		return append(verbs, seeInUse)
	case c.Mode == NoLock:
		return []lockVerb{doUnlock}
	}
	if c.Wait && h.LockDelay > 0 && c.End-c.Start >= int64(h.Prompt) {
		verbs = append(verbs, doLeave) // after a signal the kernel asks again, perhaps in the next session
	}
	return append(verbs, doTake)
}

// Tally returns the number of calls by result.
func (h *LockHistory) Tally() map[string]int {
	count := make(map[string]int)
	for _, call := range h.Calls {
		count[string(call.Kind)+" "+call.outcome()]++
	}
	return count
}
