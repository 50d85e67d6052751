package namespace

import (
	"fmt"
	"slices"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/fault"
	"lockfs/raftstore/storepb"
)

// change says what is to happen to the lock that a name is.
type change int

const (
	takeAway  change = iota // the name goes
	overwrite               // other content comes in its place
)

// refuse judges whether a caller may do that to a name: it must be the lock that the caller looked at, and
// its guard must allow it. Nil: it may. What is refused is an event.
func (ns *Namespace) refuse(by *storepb.Caller, looks []*storepb.Look, e *entry, in *inode, what change) *storepb.Result {
	if refused := ns.refuseByLook(by, looks, e, in, what); refused != nil {
		return refused
	}
	return ns.refuseByGuard(by, e, in, what)
}

// refuseByLook judges whether it is the lock that the caller looked at.
func (ns *Namespace) refuseByLook(by *storepb.Caller, looks []*storepb.Look, e *entry, in *inode, what change) *storepb.Result {
	if fault.IgnoreLooks {
		return nil
	}
	if seen := ns.lookedAtAnother(looks, e); seen != 0 {
		reason := fmt.Sprintf("the caller looked at token %d, which is gone", seen)
		ns.emitRefused(e, in, by, reason)
		code := storepb.Code_NOT_FOUND
		if what == overwrite {
			code = storepb.Code_STALE
		}
		return &storepb.Result{Code: code, Message: reason}
	}
	if lookedAtEmpty(looks, e) && ns.isJudged(e, in) && ns.isBeingWritten(e, in) {
		return ns.refuseBusy(by, e, in, "the caller looked at it before its holder had written to it")
	}
	return nil
}

// settling is how long a file that is empty may be one that somebody is about to write to: between the
// creation of a lock, or its truncation for a heartbeat, and the write that tells who holds it.
const settling = 5 * time.Second

// lookedAtEmpty tells whether the caller judged a lock in which there was nothing to judge.
func lookedAtEmpty(looks []*storepb.Look, e *entry) bool {
	for _, look := range looks {
		if look.GetParent() == e.parent && string(look.GetName()) == e.name {
			return look.GetEmpty()
		}
	}
	return false
}

// isBeingWritten tells whether a lock that was empty has content now, or may have it soon.
func (ns *Namespace) isBeingWritten(e *entry, in *inode) bool {
	if ns.staleNow(e, ns.govern(e, in)) != nil {
		return false
	}
	return len(in.content) > 0 || ns.isSettling(in)
}

// isJudged tells whether a look at a lock of that name counts: what is there may be a lock too. Not every lock has something in
// it that can be judged.
func (ns *Namespace) isJudged(e *entry, in *inode) bool {
	if ns.isLock(e, in) || fault.LookAtData {
		return true
	}
	return e.exclusive && !in.isDir() && !in.kernelLocked && lockRule(ns.ruleFor(e)).Format != lockfact.Data
}

func (ns *Namespace) isSettling(in *inode) bool { return ns.time-in.ctime < int64(settling) }

// guardOf is the guard of a lock, with the host that it speaks of. While its content is being replaced, the
// guard is what it was before, and the host is that which replaces it: the holder's, or that of one who
// takes a stale lock over.
func (ns *Namespace) guardOf(e *entry, in *inode) governed {
	if in.facts != nil || e.known == nil || !ns.isSettling(in) {
		return ns.govern(e, in)
	}
	before := *in
	before.facts = e.known
	g := ns.govern(e, &before)
	if g.byCreator {
		return g
	}
	if g.Host != in.host.String() {
		g.process, g.machine = nil, sharedString{} // those of the one before
	}
	g.Host, g.ExpiresAt = in.host.String(), 0
	return g
}

// lookedAtAnother answers the token that the caller saw, if that was another lock of the name, or in a
// directory that was another one. 0: it was not.
func (ns *Namespace) lookedAtAnother(looks []*storepb.Look, e *entry) uint64 {
	if len(looks) == 0 {
		return 0
	}
	for e != nil {
		for _, look := range looks {
			if look.GetParent() != e.parent || string(look.GetName()) != e.name || look.GetToken() == e.token {
				continue
			}
			if in, found := ns.inodes.Get(e.ino); found && ns.isJudged(e, in) {
				return look.GetToken()
			}
		}
		e = ns.nameOf(e.parent)
	}
	return 0
}

// heldByOwner tells whether a lock that only its owner removes has a holder of that name.
func (ns *Namespace) heldByOwner(e *entry, in *inode, owner string) bool {
	g := ns.guardOf(e, in)
	return owner != "" && g.Guard == lockfact.GuardOwner && g.Holder == owner
}

func (ns *Namespace) refuseByGuard(by *storepb.Caller, e *entry, in *inode, what change) *storepb.Result {
	g := ns.guardOf(e, in)
	if ns.staleNow(e, g) != nil {
		return nil
	}
	reason := ""
	switch {
	case g.Guard == lockfact.GuardOwner:
		reason = "it is live, and only its owner's token releases it"
	case g.Guard == lockfact.GuardHost && g.Host != by.GetHost():
		reason = "it is live, and was taken on " + g.Host
	case g.Guard == lockfact.GuardHost && ns.isOtherMachine(g, by):
		reason = fmt.Sprintf("it is live, and was taken on another machine named %s", g.Host)
	case g.Guard == lockfact.GuardHost && !g.process.isSeenFrom(by.GetPidNamespace()) && ns.isWatched(g.Host, g.process.processID):
		reason = "it is live, and its process is in a container that cannot be seen into from the caller's"
	case g.Guard == lockfact.GuardHost && g.Format == lockfact.Beads && what == overwrite && g.process != nil:
		if len(by.GetLineage()) == 0 {
			return fail(storepb.Code_NEED_LINEAGE)
		}
		if !descends(by, g.process) {
			reason = "it is live, and only its own process and its children write to it"
		}
	}
	if reason == "" {
		return nil
	}
	return ns.refuseBusy(by, e, in, reason)
}

func (ns *Namespace) refuseBusy(by *storepb.Caller, e *entry, in *inode, reason string) *storepb.Result {
	ns.emitRefused(e, in, by, reason)
	return &storepb.Result{Code: storepb.Code_BUSY, Message: reason}
}

func descends(by *storepb.Caller, from *process) bool {
	return slices.ContainsFunc(by.GetLineage(), func(p *storepb.Process) bool { return p != nil && processFrom(p).processID == from.processID })
}

// isOtherMachine tells whether the name of the lock's host is now that of another machine than when it was taken.
func (ns *Namespace) isOtherMachine(g governed, by *storepb.Caller) bool {
	h, known := ns.hosts.Get(by.GetHost())
	return known && g.machine.String() != "" && h.machine != g.machine.String()
}

// isSeenFrom tells whether a pid namespace is the process's own or contains that: only there a program can judge it. Where it is
// not known which those are, every one counts.
func (p *process) isSeenFrom(namespace uint64) bool {
	return p == nil || p.seenFrom == (sharedString{}) || slices.Contains(p.namespaces(), namespace)
}

// remover says for people who may remove a live lock, permissions apart; empty: anyone.
func (g governed) remover() string {
	switch {
	case g.Guard == lockfact.GuardOwner:
		return "its owner, by token"
	case g.Guard == lockfact.GuardHost && g.ByProcess() && g.process != nil:
		return "programs on host " + g.Host + " that can see its process"
	case g.Guard == lockfact.GuardHost:
		return "programs on host " + g.Host
	}
	return ""
}

// refuseBelow judges whether a directory may be moved away with all that is in it.
func (ns *Namespace) refuseBelow(by *storepb.Caller, dir *inode) *storepb.Result {
	for _, e := range ns.entriesOf(dir.ino) {
		in, found := ns.inodes.Get(e.ino)
		if !found {
			continue
		}
		if refused := ns.refuseByGuard(by, e, in, takeAway); refused != nil {
			return refused
		}
		if in.isDir() {
			if refused := ns.refuseBelow(by, in); refused != nil {
				return refused
			}
		}
	}
	return nil
}

// looksAt is what somebody has seen who read or made what a name is: that, and the lock that its directory may be.
func (ns *Namespace) looksAt(e *entry) []*storepb.Look {
	looks := []*storepb.Look{ns.lookAt(e)}
	if dir := ns.nameOf(e.parent); dir != nil {
		looks = append(looks, ns.lookAt(dir))
	}
	return looks
}

func (ns *Namespace) lookAt(e *entry) *storepb.Look {
	in, found := ns.inodes.Get(e.ino)
	return &storepb.Look{Parent: e.parent, Name: []byte(e.name), Token: e.token, Data: !found || !ns.isLock(e, in) && !fault.LookAtData}
}

// named answers the entry that a message names, if it is one of that inode.
func (ns *Namespace) named(name *storepb.Look, ino uint64) (*entry, bool) {
	if name == nil {
		return nil, false
	}
	e, found := ns.entry(name.GetParent(), name.GetName())
	return e, found && e.ino == ino
}
