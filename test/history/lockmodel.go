package history

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// lockVerb is the effect of a lockAction on the model.
type lockVerb int

const (
	doTake     lockVerb = iota // a range, replacing the owner's modes there
	doUnlock                   //
	doConvert                  // release an flock of the other mode
	doDoubt                    // from now on it is unknown whether the owner has the range
	doLeave                    // it is unknown whether an ended session has left the range locked
	seeInUse                   // another owner's lock excludes the requested one
	seeLock                    // the same, with a description of that lock
	seeNoLock                  // no lock excludes it
	seeSession                 // the owner has not ended
)

// lockAction is a step of the model.
type lockAction struct {
	call  *LockCall
	verb  lockVerb
	owner *lockOwner
}

// lockState has the owners of a file's locks, by number. Flocks and other locks are in separate spaces with a
// state each. It is never modified.
type lockState []holding

// holding is the locks of an owner.
type holding struct {
	owner *lockOwner
	sure  [places]Mode
	by    [places]*binding // binding of each lock
	doubt [places]bool     // it may have this too, in any mode
	ended string           // numbers of bindings with an ended session: their locks are gone, and they are unusable
}

// step returns the state after an action; false if it is impossible in this state. Locks of an ended owner go
// when another request gets them or finds them free, not before. This excludes no possible order.
func (s lockState) step(a *lockAction) (after lockState, possible bool) {
	own := s.of(a.owner)
	if own.hasEnded(a.within()) {
		return s, a.verb == doDoubt || a.verb == doLeave // it had no effect
	}
	want, in := a.call.Mode, a.call.Range
	switch a.verb {
	case seeSession:
		return s, true
	case seeInUse:
		return s, s.mayExclude(a)
	case seeLock:
		return s, s.maySee(a)
	case seeNoLock:
		return s.giveWay(a)
	case doTake:
		if own.isOther(a) {
			return s, false
		}
		if s, possible = s.giveWay(a); !possible {
			return s, false
		}
		own.set(a, in, want)
	case doConvert:
		if own.isOther(a) {
			own.set(a, everything, NoLock)
		}
	case doUnlock:
		own.set(a, in, NoLock)
	case doDoubt:
		own.set(a, in, NoLock)
		own.mayHaveAlso(in)
	case doLeave:
		own.mayHaveAlso(in)
	}
	return s.with(own), true
}

func (s lockState) find(o *lockOwner) (int, bool) {
	return slices.BinarySearchFunc(s, o, func(h holding, o *lockOwner) int { return cmp.Compare(h.owner.number, o.number) })
}

func (s lockState) of(o *lockOwner) holding {
	if i, found := s.find(o); found {
		return s[i]
	}
	return holding{owner: o}
}

func (s lockState) with(h holding) lockState {
	i, found := s.find(h.owner)
	after := slices.Clone(s)
	if !found {
		return slices.Insert(after, i, h)
	}
	after[i] = h
	return after
}

// giveWay ends the sessions of locks that exclude the request; false if one of them cannot have ended yet.
func (s lockState) giveWay(a *lockAction) (after lockState, possible bool) {
	for _, h := range s {
		if h.owner == a.owner || h.isOwn(a) {
			continue
		}
		for at := a.call.Range.First; at <= a.call.Range.Last; at++ {
			if !h.sure[at].excludes(a.call.Mode) {
				continue
			}
			if h.by[at].earliest > a.call.End {
				return s, false
			}
			h.end(h.by[at])
			s = s.with(h)
		}
	}
	return s, true
}

// set sets the owner's locks. Its earlier locks in a session that may have ended may stay for the lock delay.
func (h *holding) set(a *lockAction, in Range, mode Mode) {
	for at := in.First; at <= in.Last; at++ {
		h.doubt[at] = h.doubt[at] || h.mayBeAnothers(at, a)
		h.sure[at], h.by[at] = mode, nil
		if mode != NoLock {
			h.by[at] = a.within()
		}
	}
}

func (h *holding) mayHaveAlso(in Range) {
	for at := in.First; at <= in.Last; at++ {
		h.doubt[at] = true
	}
}

// mayBeLost reports whether a lock of the owner may belong to an ended session, other than the action's.
func (h *holding) mayBeLost(at int, a *lockAction) bool {
	by := h.by[at]
	return by != nil && by != a.within() && by.proof.Start < a.call.End
}

// mayBeAnothers reports whether a lock may count as another owner's, because the owner now acts in the next
// session.
func (h *holding) mayBeAnothers(at int, a *lockAction) bool {
	return h.mayBeLost(at, a) && h.by[at].stays && h.by[at].proof.Start < a.owner.bound[a.call]
}

func (h *holding) end(b *binding) {
	h.ended += string(b.number)
	for at := range places {
		if h.by[at] == b {
			h.sure[at], h.by[at] = NoLock, nil
		}
	}
}

func (h *holding) hasEnded(b *binding) bool {
	return b != nil && strings.ContainsRune(h.ended, b.number)
}

// isOther reports whether an flock must be released for the requested mode (flock(2): conversion is not
// atomic).
func (h *holding) isOther(a *lockAction) bool {
	return a.call.Kind == Flock && h.sure[0] != NoLock && h.sure[0] != a.call.Mode
}

// excludes reports whether an owner certainly has a lock that excludes the request, unless its session has
// ended. For the requesting owner itself, the session may have ended.
func (h *holding) excludes(a *lockAction) bool {
	for at := a.call.Range.First; at <= a.call.Range.Last; at++ {
		if h.sure[at].excludes(a.call.Mode) && (h.owner != a.owner || h.mayBeAnothers(at, a)) {
			return true
		}
	}
	return false
}

// isOwn reports whether the lock found by a test may be the process's own. After a close and a new open, a
// file stays locked by the same process until the cluster knows.
func (h *holding) isOwn(a *lockAction) bool {
	return a.verb == seeNoLock && a.owner.kind == Posix && h.owner.kind == Posix && h.owner.closed != nil && !h.owner.gone &&
		h.owner.first.Client == a.call.Client
}

func (h *holding) mayExclude(a *lockAction) bool {
	in := a.call.Range
	return h.owner.latest >= a.call.Start && (h.excludes(a) || slices.Contains(h.doubt[in.First:in.Last+1], true))
}

func (s lockState) mayExclude(a *lockAction) bool {
	own := s.of(a.owner)
	return !own.isOther(a) && slices.ContainsFunc(s, func(h holding) bool { return h.mayExclude(a) })
}

// maySee reports whether a lock may exist as a test has answered. Adjacent locks may be reported as one.
func (s lockState) maySee(a *lockAction) bool {
	got := a.call.Got
	if !got.Range.valid() || !got.Range.overlaps(a.call.Range) || !got.Mode.excludes(a.call.Mode) {
		return false
	}
	return slices.ContainsFunc(s, func(h holding) bool { return h.mayExclude(a) && h.mayHave(a) })
}

// mayHave reports whether a test may have found this owner's lock.
func (h *holding) mayHave(a *lockAction) bool {
	got, mayBeLost := a.call.Got, true
	for at := got.Range.First; at <= got.Range.Last; at++ {
		if h.sure[at] != got.Mode && !h.doubt[at] {
			return false
		}
		mayBeLost = mayBeLost && (h.doubt[at] || h.mayBeLost(at, a))
	}
	return h.owner.mayBeTold(a, mayBeLost)
}

var lockModel = porcupine.Model{
	Init: func() any { return lockState(nil) },
	Step: func(before, input, _ any) (bool, any) {
		after, possible := before.(lockState).step(input.(*lockAction))
		return possible, after
	},
	Equal: func(a, b any) bool { return slices.Equal(a.(lockState), b.(lockState)) },
	Hash:  func(s any) uint64 { return s.(lockState).hash() },
}

func (s lockState) hash() uint64 {
	sum := fnv.New64a()
	for _, h := range s {
		_, _ = sum.Write([]byte{byte(h.owner.number), byte(len(h.ended))})
		for at := range places {
			_, _ = sum.Write([]byte{byte(h.sure[at]), bit(h.doubt[at])})
		}
	}
	return sum.Sum64()
}

// within returns the binding of its owner at the call; nil: none.
func (a *lockAction) within() *binding { return a.owner.during[a.call] }

func (a *lockAction) String() string {
	switch a.verb {
	case doConvert:
		return "giving up for " + a.call.String()
	case seeSession:
		return "session of " + a.call.String()
	}
	return a.call.String()
}
