package namespace

import (
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// contentGrace is how long the holder of an empty file may take to write to it: after the creation of a lock,
// or its truncation for a heartbeat.
const contentGrace = 5 * time.Second

// isInContentGrace counts from the time of the content. With the inode's ctime, a user could renew the guard
// of an emptied lock forever by chmod.
func (j *evaluator) isInContentGrace(e *entry, in *inode) bool {
	since := e.contentAt
	if since == 0 || in.isDir() {
		since = in.ctime
	}
	return j.time-since < int64(contentGrace)
}

// beforeTruncation returns the inode of a just emptied lock with its former facts. Its holder is about to
// write to it. nil: the name is no such lock.
func (j *evaluator) beforeTruncation(e *entry, in *inode) *inode {
	if in.facts != nil || e.known == nil || !j.isInContentGrace(e, in) {
		return nil
	}
	before := *in
	before.facts = e.known
	return &before
}

// guardOf returns the guard of a lock with its host. While the content is being replaced, the guard is the
// former one. The host is then that of the writer: the holder, or the new holder of a stale lock.
func (j *evaluator) guardOf(e *entry, in *inode) effectiveState {
	before := j.beforeTruncation(e, in)
	if before == nil {
		return j.effective(e, in)
	}
	g := j.effective(e, before)
	if g.byCreator {
		return g
	}
	if g.Host != in.host.String() {
		g.process, g.machine = nil, internedString{} // those of the former holder
	}
	g.Host, g.ExpiresAt = in.host.String(), 0
	return g
}

func (j *evaluator) heldByOwner(e *entry, in *inode, owner string) bool {
	g := j.guardOf(e, in)
	return owner != "" && g.Guard == lockfact.GuardOwner && g.Holder == owner
}

// remover describes the programs that may remove a live lock, permissions apart; empty: all.
func (g effectiveState) remover() string {
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

// isBeingWritten reports whether a formerly empty lock has content now, or may have it soon.
func (j *evaluator) isBeingWritten(e *entry, in *inode) bool {
	if j.staleNow(e, j.effective(e, in)) != nil {
		return false
	}
	return len(in.content) > 0 || j.isInContentGrace(e, in)
}

// isOtherMachine reports whether the name of the lock's host now belongs to another machine than at its
// acquisition.
func (j *evaluator) isOtherMachine(g effectiveState, by *storepb.Caller) bool {
	h, known := j.hosts.byName.Get(by.GetHost())
	return known && g.machine.String() != "" && h.machine != g.machine.String()
}
