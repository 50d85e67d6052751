package namespace

import (
	"slices"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// announceDelay is for how long no event tells of an acquisition of which more may follow: a lock is made empty and then
// written to, written under another name and then linked or renamed, a directory and then a file in it.
const announceDelay = time.Second

// expiryBatch bounds how many locks become stale or go with one command. The leader sends another for the rest.
const expiryBatch = 200

// announceSoon has an event tell of a name that is a lock: now if nothing more is to follow.
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

// isToldOf tells whether an event told of a lock under one of its names.
func (a *announcer) isToldOf(in *inode) bool {
	return in.nlink > 1 && !in.isDir() && slices.ContainsFunc(a.tree.namesOf(in.ino), func(e *entry) bool { return e.announced })
}

// announce tells of a lock. It is one event also if the file has another name under which it was made, or lies in a
// directory that was made for it.
func (a *announcer) announce(e *entry, in *inode) *entry {
	announced := *e
	announced.pending, announced.announced = nil, true
	a.tree.putEntry(&announced)
	m := a.lockEvent(eventAcquired, &announced, in, e.pending.by)
	m.Acquired = e.acquired
	a.emit(m)
	if in.isDir() {
		for _, inside := range a.tree.entriesOf(in.ino) {
			a.silence(inside) // it came with the directory, which was moved to its name
		}
		return &announced
	}
	for _, other := range a.tree.namesOf(in.ino) {
		a.silence(other)
	}
	a.speakFor(e.parent)
	return &announced
}

// speakFor says that a lock in a directory tells of the acquisition that the directory is a part of.
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

// announceBefore tells of a lock before something else is told of it.
func (a *announcer) announceBefore(e *entry, in *inode) *entry {
	if e.pending == nil {
		return e
	}
	if !a.isLock(e, in) {
		return a.silence(e)
	}
	return a.announce(e, in)
}

// announcePending runs with every command, like dropExpiredOrphans.
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

// emitReleased tells that a program took a name away, if it was known to be a lock. request is on whose behalf,
// if the program said so.
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
