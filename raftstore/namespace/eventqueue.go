package namespace

import (
	"slices"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// announceDelay is how long the event of an acquisition waits for further steps. Programs create an empty
// lock and write to it, link or rename it to its final name, or create a file in a new directory.
const announceDelay = time.Second

// expiryBatch bounds the locks that become stale or are removed with one command. The leader sends another
// command for the rest.
const expiryBatch = 200

// announceSoon schedules the event of an acquired lock, or emits it now if done.
func (a *announcer) announceSoon(by *storepb.Caller, e *entry, in *inode, done bool) *entry {
	isLock := !e.announced && a.isLock(e, in)
	changed := *e
	switch {
	case isLock && done:
		changed.pending = &pending{by: by}
		return a.announce(&changed, in)
	case isLock && e.pending == nil && !a.isToldOf(in):
		changed.pending = &pending{until: a.time + int64(announceDelay), by: withoutLineage(by)}
	case !isLock && e.pending != nil && !in.isDir():
		changed.pending = nil
	default:
		return e
	}
	a.tree.putEntry(&changed)
	if isLock && !in.isDir() {
		a.speakFor(e.parent)
	}
	return &changed
}

func (a *announcer) isToldOf(in *inode) bool {
	return in.nlink > 1 && !in.isDir() && slices.ContainsFunc(a.tree.namesOf(in.ino), func(e *entry) bool { return e.announced })
}

// announce emits the event of an acquired lock. The file's other names, and the directory created for it,
// have no event of their own.
func (a *announcer) announce(e *entry, in *inode) *entry {
	announced := *e
	announced.pending, announced.announced = nil, true
	a.tree.putEntry(&announced)
	m := a.lockEvent(eventAcquired, &announced, in, e.pending.by)
	m.Acquired = e.acquired
	a.emit(m)
	if in.isDir() {
		for _, inside := range a.tree.entriesOf(in.ino) {
			a.silence(inside) // it moved with the directory
		}
		return &announced
	}
	for _, other := range a.tree.namesOf(in.ino) {
		a.silence(other)
	}
	a.speakFor(e.parent)
	return &announced
}

// speakFor drops the pending event of a directory: the event of a lock in it reports the same acquisition.
func (a *announcer) speakFor(dir ids.Inode) {
	if e := a.tree.nameOf(dir); e != nil {
		a.silence(e)
	}
}

func (a *announcer) silence(e *entry) *entry {
	if e.pending == nil {
		return e
	}
	silent := *e
	silent.pending = nil
	a.tree.putEntry(&silent)
	return &silent
}

func (a *announcer) announceBefore(e *entry, in *inode) *entry {
	if e.pending == nil {
		return e
	}
	if !a.isLock(e, in) {
		return a.silence(e)
	}
	return a.announce(e, in)
}

// announcePending emits due events. Every command runs it.
func (a *announcer) announcePending() {
	for range expiryBatch {
		e, found := a.tree.byPending.Min()
		if !found || e.pending.until > a.time {
			return
		}
		in, found := a.tree.inode(e.ino)
		if !found || !a.isLock(e, in) {
			a.silence(e)
			continue
		}
		a.announce(e, in)
	}
}

// emitReleased reports that a program removed a lock. request is the request on behalf of which it did so, if
// known.
func (a *announcer) emitReleased(e *entry, in *inode, by *storepb.Caller, reason, request string) {
	if e = a.announceBefore(e, in); !e.announced {
		return
	}
	if reason == "" && e.stale != nil {
		reason = "it was stale: " + e.stale.reason
	}
	m := a.lockEvent(eventReleased, e, in, by)
	m.Reason, m.Request = reason, request
	a.emit(m)
}

func (a *announcer) emitRefused(e *entry, in *inode, by *storepb.Caller, why Refusal, reason string) {
	a.events.refused[why]++
	e = a.announceBefore(e, in)
	m := a.lockEvent(eventRefused, e, in, by)
	m.Reason = reason
	a.emit(m)
}
