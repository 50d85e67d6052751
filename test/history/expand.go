package history

import (
	"fmt"
	"syscall"

	"github.com/anishathalye/porcupine"
)

// maxUnknown is the largest number of creations of unknown outcome, and of other such calls with a known end,
// in a directory: bits in a state.
const maxUnknown = 64

// expansion turns the calls in one directory into operations.
type expansion struct {
	settled    int64
	operations []porcupine.Operation
	unknown    int // number of these so far
	unnamed    int64
	asked      map[int64]bool
	views      map[*Call]view
	disksFill  bool
}

func expand(calls []*Call, settled int64, forgetful, disksFill bool) (*expansion, error) {
	x := &expansion{settled: settled, asked: make(map[int64]bool), disksFill: disksFill}
	if !forgetful {
		x.views = viewsOf(calls)
	}
	for _, call := range calls {
		if call.OnDescriptor() || call.Kind == Stat {
			x.asked[int64(max(call.Ino, call.Got.Ino))] = true
		}
		if err := x.expand(call); err != nil {
			return nil, err
		}
	}
	if x.unknown > maxUnknown {
		return nil, fmt.Errorf("%d calls of unknown outcome are too many", x.unknown)
	}
	return x, nil
}

// add adds an operation of a call.
func (x *expansion) add(a action) { x.until(a, a.call.End) }

func (x *expansion) until(a action, end int64) {
	a.view = x.views[a.call]
	x.operations = append(x.operations, porcupine.Operation{
		ClientId: a.call.Client, Input: &a, Call: a.call.Start, Return: end,
	})
}

func (x *expansion) expand(call *Call) error {
	switch {
	case call.Unknown():
		x.expandUnknown(call)
		return nil
	case !call.Mutates() && (call.Errno == syscall.ETIMEDOUT || call.Orphaned()):
		if call.Kind == List && call.End != 0 {
			x.add(action{call: call, verb: seeNothing})
		}
		return nil
	case call.Errno == 0:
		x.expandDone(call)
		return nil
	case mayBeHeld(call):
		a := x.changeOf(call)
		a.verb = seeRefused
		x.add(a)
		return nil
	case call.Errno == syscall.ESTALE && call.OnDescriptor():
		x.add(action{call: call, verb: seeGone, ino: int64(call.Ino)})
		return nil
	case call.Errno == syscall.ESTALE:
		return nil
	case call.Errno == syscall.ENOSPC && call.Mutates() && x.disksFill:
		return nil
	}
	seen := refusal(call)
	if seen == nil {
		return fmt.Errorf("an error that nobody should get: %v", call)
	}
	for _, a := range seen {
		a.call = call
		x.add(a)
	}
	return nil
}

// mayBeHeld reports whether a call may have been refused because of its process's looks.
func mayBeHeld(call *Call) bool {
	switch call.Errno {
	case syscall.ENOENT, syscall.EBUSY, syscall.ESTALE:
		return len(call.heldFor()) > 0
	}
	return false
}

// refusal returns the observations of a refused call; nil without a reason for the refusal.
func refusal(call *Call) []action {
	name, to := call.Name, call.To
	made := name
	if call.Kind == Link || call.Kind == NoReplace {
		made = to
	}
	switch call.Errno {
	case syscall.EEXIST:
		switch call.Kind {
		case Create, Mkdir, Link, NoReplace:
			return []action{{verb: seeTaken, name: made}}
		}
	case syscall.ENOENT:
		switch call.Kind {
		case Look, Stat, Link:
			return []action{{verb: seeFree, name: name}}
		}
	case syscall.EISDIR:
		switch call.Kind {
		case Open, Unlink:
			return []action{{verb: seeDir, name: name}}
		case Rename:
			return []action{{verb: seeFile, name: name}, {verb: seeDir, name: to}}
		}
	case syscall.ENOTDIR:
		switch call.Kind {
		case Rmdir:
			return []action{{verb: seeFile, name: name}}
		case Rename:
			return []action{{verb: seeDir, name: name}, {verb: seeFile, name: to}}
		}
	case syscall.EPERM:
		if call.Kind == Link {
			return []action{{verb: seeDir, name: name}}
		}
	}
	return nil
}

func (x *expansion) expandDone(call *Call) {
	ino := int64(call.Got.Ino)
	switch call.Kind {
	case Look:
		if ino != 0 {
			x.add(action{call: call, verb: seeName, name: call.Name, ino: ino, dir: call.Got.Dir})
			return
		}
		x.add(action{call: call, verb: seeTaken, name: call.Name})
	case Stat:
		x.add(action{call: call, verb: seeName, name: call.Name, ino: ino, dir: call.Got.Dir})
		x.add(action{call: call, verb: seeAttr, ino: ino})
	case Fstat:
		x.add(action{call: call, verb: seeAttr, ino: int64(call.Ino)})
	case Read:
		x.add(action{call: call, verb: seeContent, ino: int64(call.Ino)})
	case List:
		x.add(action{call: call, verb: seeAll})
	default:
		x.add(x.changeOf(call))
	}
}

// expandUnknown adds operations that need not have been done.
func (x *expansion) expandUnknown(call *Call) {
	a := x.changeOf(call)
	a.maybe = true
	over := int64(never)
	if call.Over != 0 {
		over = call.Over
	}
	switch call.Kind {
	case Create, Mkdir, Link, NoReplace:
	default:
		if call.Over != 0 {
			x.unknown++
			a.number = x.unknown
			x.until(action{call: call, verb: doGiveUp, number: a.number}, over)
		}
		x.until(a, over)
		return
	}
	x.unknown++
	a.maker, a.number = x.unknown, x.unknown
	x.until(a, over)
	back := action{call: call, verb: doTakeBack, maker: a.maker, number: a.number}
	if call.End == 0 {
		x.until(back, never)
		return
	}
	// No call has seen the run settled if that is not later than the call.
	x.until(back, min(over, max(x.settled, call.End)))
}

func (x *expansion) changeOf(call *Call) action {
	a := action{call: call, name: call.Name, to: call.To, ino: int64(max(call.Ino, call.Got.Ino))}
	if a.ino == 0 {
		x.unnamed--
		a.ino = x.unnamed
	}
	switch call.Kind {
	case Create:
		a.verb = doMake
	case Mkdir:
		a.verb, a.dir = doMake, true
	case Open:
		a.verb = doOpen
	case Unlink:
		a.verb = doRemove
	case Rmdir:
		a.verb, a.dir = doRemove, true
	case Link:
		a.verb = doLink
	case Rename, NoReplace:
		a.verb = doRename
	default:
		a.verb = doContent
	}
	return a
}
