package namespace

import (
	"slices"
	"time"

	"lockfs/raftstore/storepb"
)

// announceDelay is for how long no event tells of an acquisition of which more may follow: a lock is made empty and then
// written to, written under another name and then linked or renamed, a directory and then a file in it.
const announceDelay = time.Second

// pending is an acquisition of which no event has told yet. It is never modified.
type pending struct {
	until int64
	by    *storepb.Caller
}

// announceSoon has an event tell of a name that is a lock: now if nothing more is to follow.
func (ns *Namespace) announceSoon(by *storepb.Caller, e *entry, in *inode, done bool) *entry {
	isLock := !e.announced && ns.isLock(e, in)
	changed := *e
	switch {
	case isLock && done:
		changed.pending = &pending{by: by}
		return ns.announce(&changed, in)
	case isLock && e.pending == nil && !ns.isToldOf(in):
		changed.pending = &pending{until: ns.time + int64(announceDelay), by: withoutLineage(by)}
	case !isLock && e.pending != nil && !in.isDir():
		changed.pending = nil
	default:
		return e
	}
	ns.putEntry(&changed)
	if isLock && !in.isDir() {
		ns.speakFor(e.parent)
	}
	return &changed
}

// isToldOf tells whether an event told of a lock under one of its names.
func (ns *Namespace) isToldOf(in *inode) bool {
	return in.nlink > 1 && !in.isDir() && slices.ContainsFunc(ns.namesOf(in.ino), func(e *entry) bool { return e.announced })
}

// announce tells of a lock. It is one event also if the file has another name under which it was made, or lies in a
// directory that was made for it.
func (ns *Namespace) announce(e *entry, in *inode) *entry {
	announced := *e
	announced.pending, announced.announced = nil, true
	ns.putEntry(&announced)
	m := ns.lockEvent(eventAcquired, &announced, in, e.pending.by)
	m.Acquired = e.acquired
	ns.emit(m)
	if in.isDir() {
		for _, inside := range ns.entriesOf(in.ino) {
			ns.silence(inside) // it came with the directory, which was moved to its name
		}
		return &announced
	}
	for _, other := range ns.namesOf(in.ino) {
		ns.silence(other)
	}
	ns.speakFor(e.parent)
	return &announced
}

// speakFor says that a lock in a directory tells of the acquisition that the directory is a part of.
func (ns *Namespace) speakFor(dir uint64) {
	if e := ns.nameOf(dir); e != nil {
		ns.silence(e)
	}
}

func (ns *Namespace) silence(e *entry) *entry {
	if e.pending == nil {
		return e
	}
	silent := *e
	silent.pending = nil
	ns.putEntry(&silent)
	return &silent
}

// announceBefore tells of a lock before something else is told of it.
func (ns *Namespace) announceBefore(e *entry, in *inode) *entry {
	if e.pending == nil {
		return e
	}
	if !ns.isLock(e, in) {
		return ns.silence(e)
	}
	return ns.announce(e, in)
}

// announcePending runs with every command, like dropExpiredOrphans.
func (ns *Namespace) announcePending() {
	for range expiryBatch {
		e, found := ns.byPending.Min()
		if !found || e.pending.until > ns.time {
			return
		}
		in, found := ns.inodes.Get(e.ino)
		if !found || !ns.isLock(e, in) {
			ns.silence(e)
			continue
		}
		ns.announce(e, in)
	}
}
