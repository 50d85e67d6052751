package namespace

import (
	"fmt"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// Implements the guards, and emits the events of refusals.
type guard struct{ eventWriter }

// change is the intended change of a name's lock.
type change int

const (
	takeAway  change = iota // the name is removed
	overwrite               // its content is replaced
)

// refuse returns nil if a caller may change a name: it must be the lock the caller observed, and its guard
// must allow the change. A refusal is an event.
func (w *guard) refuse(by *storepb.Caller, seen []*storepb.Observation, e *entry, in *inode, what change) *storepb.Result {
	if refused := w.refuseByObservation(by, seen, e, in, what); refused != nil {
		return refused
	}
	return w.refuseByGuard(by, e, in, what)
}

// refuseByObservation refuses a change if the caller observed another lock.
func (w *guard) refuseByObservation(by *storepb.Caller, seen []*storepb.Observation, e *entry, in *inode, what change) *storepb.Result {
	if other := w.observedOther(seen, e); other != 0 {
		reason := fmt.Sprintf("the caller looked at token %d, which is gone", other)
		w.emitRefused(e, in, by, RefusedLook, reason)
		code := storepb.Code_NOT_FOUND
		if what == overwrite {
			code = storepb.Code_STALE
		}
		return &storepb.Result{Code: code, Message: reason}
	}
	if observedEmpty(seen, e) && w.mayBeLock(e, in) && w.isBeingWritten(e, in) {
		return w.refuseBusy(by, e, in, RefusedBeginning, "the caller looked at it before its holder wrote to it")
	}
	return nil
}

func (w *guard) refuseByGuard(by *storepb.Caller, e *entry, in *inode, what change) *storepb.Result {
	g := w.guardOf(e, in)
	if w.staleNow(e, g) != nil {
		return nil
	}
	why, reason := Refusal(""), ""
	switch {
	case g.Guard == lockfact.GuardOwner:
		why, reason = RefusedOwner, "it is live, and only its owner's token releases it"
	case g.Guard == lockfact.GuardHost && g.Host != by.GetHost():
		why, reason = RefusedHost, "it is live, and its holder is on "+g.Host
	case g.Guard == lockfact.GuardHost && w.isOtherMachine(g, by):
		why, reason = RefusedMachine, fmt.Sprintf("it is live, and its holder is on another machine named %s", g.Host)
	case g.Guard == lockfact.GuardHost && !g.process.isSeenFrom(by.GetPidNamespace()) && w.sessions.isWatched(g.Host, g.process.processID):
		why, reason = RefusedContainer, "it is live, and its process is in a container invisible to the caller"
	case g.Guard == lockfact.GuardHost && g.Format == lockfact.Beads && what == overwrite && g.process != nil:
		if len(by.GetLineage()) == 0 {
			return fail(storepb.Code_NEED_LINEAGE)
		}
		if !descends(by, g.process) {
			why, reason = RefusedProcess, "it is live, and only its own process and its children write to it"
		}
	}
	if reason == "" {
		return nil
	}
	return w.refuseBusy(by, e, in, why, reason)
}

func (w *guard) refuseBusy(by *storepb.Caller, e *entry, in *inode, why Refusal, reason string) *storepb.Result {
	w.emitRefused(e, in, by, why, reason)
	return &storepb.Result{Code: storepb.Code_BUSY, Message: reason}
}

// maxMoved is the most names below a renamed directory the rename has to evaluate one by one.
const maxMoved = 1024

// refuseBelow checks whether a directory may move with everything in it. It visits only names with a guard.
func (w *guard) refuseBelow(by *storepb.Caller, dir *inode) *storepb.Result {
	if guarded := w.tree.below[dir.ino].guarded; guarded > maxMoved {
		return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
			"%d locks are below the directory, and a directory can be renamed with %d at most: release or rename some of them first", guarded, maxMoved)}
	}
	for _, e := range w.tree.guardedBelow(dir.ino) {
		in, found := w.tree.inode(e.ino)
		if !found {
			continue
		}
		if refused := w.refuseByGuard(by, e, in, takeAway); refused != nil {
			return refused
		}
	}
	return nil
}
