package lockhistory

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"lockfs/raftstore/lockjson"
)

// Locks of flock and fcntl, which are in calls alone. The mounts that were not traced may have had others, so nothing is concluded from a
// refusal, and a lock of which nobody recorded the end may have ended at any time.

// kernelLock is a range that an owner has.
type kernelLock struct {
	kind, owner string // those of different kinds do not exclude each other
	start, last uint64
	shared      bool
}

// kernelState is sorted, and never modified.
type kernelState []kernelLock

// kernelOperation is a call, or the end that nobody has recorded of what it locked.
type kernelOperation struct {
	call *lockjson.Call
	ends bool
}

func (o *kernelOperation) String() string { return describeCall(o.call) }

var kernelModel = porcupine.Model{
	Init: func() any { return kernelState(nil) },
	Step: func(before, input, _ any) (bool, any) {
		after, possible := before.(kernelState).step(input.(*kernelOperation))
		return possible, after
	},
	Equal: func(a, b any) bool { return slices.Equal(a.(kernelState), b.(kernelState)) },
	Hash: func(s any) uint64 {
		sum := fnv.New64a()
		_, _ = fmt.Fprint(sum, s)
		return sum.Sum64()
	},
}

func (s kernelState) step(o *kernelOperation) (after kernelState, possible bool) {
	wanted := lockOf(o.call)
	for _, l := range s {
		apart := l.kind != wanted.kind || l.last < wanted.start || wanted.last < l.start
		switch {
		case apart:
			after = append(after, l)
		case l.owner == wanted.owner: // what is left of it
			if l.start < wanted.start {
				after = append(after, kernelLock{l.kind, l.owner, l.start, wanted.start - 1, l.shared})
			}
			if l.last > wanted.last {
				after = append(after, kernelLock{l.kind, l.owner, wanted.last + 1, l.last, l.shared})
			}
		case o.locks() && (!l.shared || !wanted.shared):
			return s, false
		default:
			after = append(after, l)
		}
	}
	if o.locks() {
		after = append(after, wanted)
	}
	slices.SortFunc(after, func(a, b kernelLock) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.owner, b.owner), cmp.Compare(a.start, b.start))
	})
	return after, true
}

func (o *kernelOperation) locks() bool { return o.call.Call == lockjson.CallLock && !o.ends }

func lockOf(c *lockjson.Call) kernelLock {
	kind, owner, _ := strings.Cut(c.Owner, " ")
	return kernelLock{kind, fmt.Sprintf("%s of session %016x", owner, c.Session), c.Start, c.Last, c.Shared}
}

func checkKernelLocks(calls []*lockjson.Call, within time.Duration) (found []*Contradiction, err error) {
	byInode := make(map[uint64][]*lockjson.Call)
	for _, c := range calls {
		if c.Call == lockjson.CallUnlock || c.Call == lockjson.CallLock && c.Error == "" {
			byInode[c.Inode] = append(byInode[c.Inode], c)
		}
	}
	for _, ino := range slices.Sorted(maps.Keys(byInode)) {
		path := fmt.Sprintf("inode %d", ino)
		for _, stretch := range stretchesOf(byInode[ino]) {
			operations := kernelOperations(stretch)
			switch porcupine.CheckOperationsTimeout(kernelModel, operations, within) {
			case porcupine.Illegal:
				found = append(found, &Contradiction{Path: path, Why: "two had locks of it that exclude each other", Piece: smallestOf(operations, within)})
			case porcupine.Unknown:
				return nil, &Undecided{path}
			}
		}
	}
	return found, nil
}

// stretchesOf cuts calls where none is under way and nobody is known to have a lock.
func stretchesOf(calls []*lockjson.Call) (stretches [][]*lockjson.Call) {
	slices.SortStableFunc(calls, func(a, b *lockjson.Call) int { return a.Begin.Compare(b.Begin) })
	var now kernelState
	var end time.Time
	begin := 0
	for i, c := range calls {
		if len(now) == 0 && i > begin && c.Begin.Add(-c.Within).After(end) {
			stretches = append(stretches, calls[begin:i])
			begin = i
		}
		if c.End.Add(c.Within).After(end) {
			end = c.End.Add(c.Within)
		}
		now, _ = now.step(&kernelOperation{call: c})
	}
	return append(stretches, calls[begin:])
}

func kernelOperations(calls []*lockjson.Call) (operations []porcupine.Operation) {
	for i, c := range calls {
		from, until := c.Begin.Add(-c.Within).UnixNano(), c.End.Add(c.Within).UnixNano()
		operations = append(operations, porcupine.Operation{ClientId: i, Input: &kernelOperation{call: c}, Call: from, Return: until})
		if c.Call == lockjson.CallLock && !isEnded(c, calls) {
			operations = append(operations, porcupine.Operation{ClientId: i, Input: &kernelOperation{c, true}, Call: from, Return: math.MaxInt64})
		}
	}
	return operations
}

// isEnded tells whether its owner is recorded to have given up all of a lock later, or changed it.
func isEnded(lock *lockjson.Call, calls []*lockjson.Call) bool {
	wanted := lockOf(lock)
	return slices.ContainsFunc(calls, func(c *lockjson.Call) bool {
		l := lockOf(c)
		return c != lock && l.kind == wanted.kind && l.owner == wanted.owner && l.start <= wanted.start && l.last >= wanted.last && c.Begin.After(lock.Begin)
	})
}

// endsFirst tells whether a call is the first to give up what was locked by another one: until then it was there for sure.
func endsFirst(end *lockjson.Call, lock porcupine.Operation, operations []porcupine.Operation) bool {
	l := lock.Input.(*kernelOperation)
	ofLock := func(c *lockjson.Call) bool {
		return lockOf(c).owner == lockOf(l.call).owner && c.Begin.After(l.call.Begin)
	}
	return l.locks() && ofLock(end) && !slices.ContainsFunc(operations, func(o porcupine.Operation) bool {
		k := o.Input.(*kernelOperation)
		return !k.locks() && !k.ends && ofLock(k.call) && k.call.Begin.Before(end.Begin)
	})
}

// smallestOf leaves out one call after the other that the contradiction does not need.
func smallestOf(operations []porcupine.Operation, within time.Duration) (steps []*Step) {
	for i := len(operations) - 1; i >= 0; i-- {
		rest := slices.Delete(slices.Clone(operations), i, i+1)
		if locks := operations[i].Input.(*kernelOperation).locks(); locks && porcupine.CheckOperationsTimeout(kernelModel, rest, within) == porcupine.Illegal {
			operations = rest
		}
	}
	operations = slices.DeleteFunc(slices.Clone(operations), func(o porcupine.Operation) bool {
		k := o.Input.(*kernelOperation)
		return !k.locks() && !slices.ContainsFunc(operations, func(l porcupine.Operation) bool { return endsFirst(k.call, l, operations) })
	})
	for _, o := range operations {
		if k := o.Input.(*kernelOperation); !k.ends {
			steps = append(steps, &Step{Call: k.call})
		}
	}
	slices.SortStableFunc(steps, func(a, b *Step) int { return a.Time().Compare(b.Time()) })
	return steps
}
