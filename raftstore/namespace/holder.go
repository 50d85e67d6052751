package namespace

import (
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// settling is the time in which the holder of an empty file may be about to write to it: between the creation of a lock, or its truncation
// for a heartbeat, and the write that names the holder.
const settling = 5 * time.Second

// isSettling counts from the time of the content. With the time of the last change of the inode, a user could renew the guard of an emptied
// lock forever by chmod.
func (j *judge) isSettling(e *entry, in *inode) bool {
	since := e.contentAt
	if since == 0 || in.isDir() {
		since = in.ctime
	}
	return j.time-since < int64(settling)
}

// emptied returns the inode of a lock that was emptied just now, with the facts from before. Its holder is about to write to it. Nil: the
// name is no such lock.
func (j *judge) emptied(e *entry, in *inode) *inode {
	if in.facts != nil || e.known == nil || !j.isSettling(e, in) {
		return nil
	}
	before := *in
	before.facts = e.known
	return &before
}

// guardOf is the guard of a lock, with the host that it speaks of. While its content is being replaced, the
// guard is what it was before, and the host is that which replaces it: the holder's, or that of one who
// takes a stale lock over.
func (j *judge) guardOf(e *entry, in *inode) governed {
	before := j.emptied(e, in)
	if before == nil {
		return j.govern(e, in)
	}
	g := j.govern(e, before)
	if g.byCreator {
		return g
	}
	if g.Host != in.host.String() {
		g.process, g.machine = nil, sharedString{} // those of the one before
	}
	g.Host, g.ExpiresAt = in.host.String(), 0
	return g
}

// heldByOwner tells whether a lock that only its owner removes has a holder of that name.
func (j *judge) heldByOwner(e *entry, in *inode, owner string) bool {
	g := j.guardOf(e, in)
	return owner != "" && g.Guard == lockfact.GuardOwner && g.Holder == owner
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

// isBeingWritten tells whether a lock that was empty has content now, or may have it soon.
func (j *judge) isBeingWritten(e *entry, in *inode) bool {
	if j.staleNow(e, j.govern(e, in)) != nil {
		return false
	}
	return len(in.content) > 0 || j.isSettling(e, in)
}

// isOtherMachine tells whether the name of the lock's host is now that of another machine than when it was taken.
func (j *judge) isOtherMachine(g governed, by *storepb.Caller) bool {
	h, known := j.hosts.byName.Get(by.GetHost())
	return known && g.machine.String() != "" && h.machine != g.machine.String()
}
