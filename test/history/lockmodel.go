package history

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// lockVerb is what a lockAction does to the model.
type lockVerb int

const (
	doTake     lockVerb = iota // a range, in the place of what its owner had there
	doUnlock                   //
	doConvert                  // give up an flock of the other mode
	doDoubt                    // whether the owner has the range from now on is not known
	doLeave                    // whether a session that ended has left the range locked is not known
	seeInUse                   // somebody else's lock excludes the one that was wanted
	seeLock                    // the same, and which it is
	seeNoLock                  // nobody's does
	seeSession                 // the owner has not ended
)

// lockAction is a step of the model.
type lockAction struct {
	call  *LockCall
	verb  lockVerb
	owner *lockOwner
}

// lockState is who has locked a file, by number. Flocks and the others are in different spaces, each of which has
// a state. It is never modified.
type lockState []holding

// holding is what an owner has.
type holding struct {
	owner *lockOwner
	sure  [places]Mode
	by    [places]*binding // in which it took that
	doubt [places]bool     // it may have that too, in any mode
	ended string           // numbers of bindings whose session has ended: what it had in them is gone, and nothing more can be done in them
}

// step answers the state after an action; false if it cannot have happened in that state. What an owner had when
// it ended goes when somebody gets it or finds it free, not before: that excludes nothing that can have happened.
func (s lockState) step(a *lockAction) (after lockState, possible bool) {
	own := s.of(a.owner)
	if own.hasEnded(a.within()) {
		return s, a.verb == doDoubt || a.verb == doLeave // then it had no effect
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

// giveWay ends the sessions in which others have what excludes what is wanted; false if one of them cannot have ended yet.
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

// set is what an action has its owner have. What that had in a session that may have ended may stay for the lock delay.
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

// mayBeLost tells whether what an owner has at a place may be of a session that has ended when an action comes, which is not of it.
func (h *holding) mayBeLost(at int, a *lockAction) bool {
	by := h.by[at]
	return by != nil && by != a.within() && by.proof.Start < a.call.End
}

// mayBeAnothers tells whether that may be another one's lock to the owner, who does something in the next session.
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

// isOther tells whether an flock has to be given up to get the one that is wanted (flock(2): converting is not
// atomic).
func (h *holding) isOther(a *lockAction) bool {
	return a.call.Kind == Flock && h.sure[0] != NoLock && h.sure[0] != a.call.Mode
}

// excludes tells whether an owner surely has what excludes what is wanted, unless its session has ended; the one that wants it: if that
// may have.
func (h *holding) excludes(a *lockAction) bool {
	for at := a.call.Range.First; at <= a.call.Range.Last; at++ {
		if h.sure[at].excludes(a.call.Mode) && (h.owner != a.owner || h.mayBeAnothers(at, a)) {
			return true
		}
	}
	return false
}

// isOwn tells whether a process that tests for locks may still have had that itself: a file that it closed, and opened again, is
// locked until the cluster knows, and by the same process.
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

// maySee tells whether there may be a lock as a test has answered. Locks that touch may be told of as one.
func (s lockState) maySee(a *lockAction) bool {
	got := a.call.Got
	if !got.Range.valid() || !got.Range.overlaps(a.call.Range) || !got.Mode.excludes(a.call.Mode) {
		return false
	}
	return slices.ContainsFunc(s, func(h holding) bool { return h.mayExclude(a) && h.mayHave(a) })
}

// mayHave tells whether it may be this one's lock that a test was told of.
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

// within is the binding of its owner in which it was; nil: none.
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
