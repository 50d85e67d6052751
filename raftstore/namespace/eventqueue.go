package namespace

import (
	"slices"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// eventDelay is how long the event of an acquisition waits for further steps. Programs create an empty
// lock and write to it, link or rename it to its final name, or create a file in a new directory.
const eventDelay = time.Second

// expiryBatch bounds the locks that become stale or are removed with one command. The leader sends another
// command for the rest.
const expiryBatch = 200

// queueEvent schedules the event of an acquired lock, or emits it now if done.
func (a *eventWriter) queueEvent(by *storepb.Caller, e *entry, in *inode, done bool) *entry {
	isLock := !e.announced && a.isLock(e, in)
	changed := *e
	switch {
	case isLock && done:
		changed.pending = &pending{by: by}
		return a.emitAcquired(&changed, in)
	case isLock && e.pending == nil && !a.isAnnounced(in):
		changed.pending = &pending{until: a.time + int64(eventDelay), by: withoutLineage(by)}
	case !isLock && e.pending != nil && !in.isDir():
		changed.pending = nil
	default:
		return e
	}
	a.tree.putEntry(&changed)
	if isLock && !in.isDir() {
		a.suppressDirectory(e.parent)
	}
	return &changed
}

func (a *eventWriter) isAnnounced(in *inode) bool {
	return in.nlink > 1 && !in.isDir() && slices.ContainsFunc(a.tree.namesOf(in.ino), func(e *entry) bool { return e.announced })
}

// emitAcquired emits the event of an acquired lock. The file's other names, and the directory created for it,
// have no event of their own.
func (a *eventWriter) emitAcquired(e *entry, in *inode) *entry {
	announced := *e
	announced.pending, announced.announced = nil, true
	a.tree.putEntry(&announced)
	m := a.lockEvent(eventAcquired, &announced, in, e.pending.by)
	m.Acquired = e.acquired
	a.emit(m)
	if in.isDir() {
		for _, inside := range a.tree.entriesOf(in.ino) {
			a.suppress(inside) // it moved with the directory
		}
		return &announced
	}
	for _, other := range a.tree.namesOf(in.ino) {
		a.suppress(other)
	}
	a.suppressDirectory(e.parent)
	return &announced
}

// suppressDirectory drops the pending event of a directory: the event of a lock in it reports the same
// acquisition.
func (a *eventWriter) suppressDirectory(dir ids.Inode) {
	if e := a.tree.nameOf(dir); e != nil {
		a.suppress(e)
	}
}

func (a *eventWriter) suppress(e *entry) *entry {
	if e.pending == nil {
		return e
	}
	silent := *e
	silent.pending = nil
	a.tree.putEntry(&silent)
	return &silent
}

func (a *eventWriter) emitPending(e *entry, in *inode) *entry {
	if e.pending == nil {
		return e
	}
	if !a.isLock(e, in) {
		return a.suppress(e)
	}
	return a.emitAcquired(e, in)
}

// emitDue emits due events. Every command runs it.
func (a *eventWriter) emitDue() {
	for range expiryBatch {
		e, found := a.tree.byPending.Min()
		if !found || e.pending.until > a.time {
			return
		}
		in, found := a.tree.inode(e.ino)
		if !found || !a.isLock(e, in) {
			a.suppress(e)
			continue
		}
		a.emitAcquired(e, in)
	}
}

// emitReleased reports that a program removed a lock. request is the request on behalf of which it did so, if
// known.
func (a *eventWriter) emitReleased(e *entry, in *inode, by *storepb.Caller, reason, request string) {
	if e = a.emitPending(e, in); !e.announced {
		return
	}
	if reason == "" && e.stale != nil {
		reason = "it was stale: " + e.stale.reason
	}
	m := a.lockEvent(eventReleased, e, in, by)
	m.Reason, m.Request = reason, request
	a.emit(m)
}

func (a *eventWriter) emitRefused(e *entry, in *inode, by *storepb.Caller, why Refusal, reason string) {
	a.events.refused[why]++
	e = a.emitPending(e, in)
	m := a.lockEvent(eventRefused, e, in, by)
	m.Reason = reason
	a.emit(m)
}
