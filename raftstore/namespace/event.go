package namespace

import (
	"crypto/sha256"
	"encoding/hex"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// The events of the audit trail.
const (
	eventAcquired        = "lock_acquired"    // a name was taken, or its content told for the first time by whom
	eventReleased        = "lock_released"    // a program took it away
	eventStale           = "lock_stale"       // on the evidence given
	eventStolen          = "lock_stolen"      // another holder took its place
	eventRemoved         = "lock_removed"     // by lockfs, or by force
	eventRefused         = "removal_refused"  // an accident that did not happen
	eventHostUnreachable = "host_unreachable" // its last session was given up on
	eventHostBack        = "host_back"
	eventHostForgotten   = "host_forgotten" // somebody said that it is gone for good
	eventSessionEnded    = "session_ended"  // it was given up on
)

// keptEvents is how many events the state keeps.
const keptEvents = 10_000

// emit numbers an event and keeps it.
func (ns *Namespace) emit(e *storepb.Event) {
	ns.lastEvent++
	e.Number, e.Time = ns.lastEvent, ns.time
	ns.events.Set(e.Number, e)
	if ns.events.Len() > keptEvents {
		ns.events.PopMin()
	}
	count, _ := ns.eventCounts.Get(e.Event)
	ns.eventCounts.Set(e.Event, count+1)
}

// lockEvent describes the lock that a name is. by is who made the call; nil: lockfs itself.
func (ns *Namespace) lockEvent(event string, e *entry, in *inode, by *storepb.Caller) *storepb.Event {
	m := &storepb.Event{
		Event: event, Path: []byte(ns.path(e)), Token: e.token, By: withoutLineage(by),
		Parent: e.parent, Mode: in.mode, Uid: in.uid, Gid: in.gid,
	}
	if g := ns.govern(e, in); g.byCreator {
		m.Format, m.Holder, m.Host, m.Pid = string(g.Format), g.Holder, g.Host, uint32(g.PID)
		return m
	}
	describeHolder(m, e.known, in)
	return m
}

func describeHolder(m *storepb.Event, known *facts, in *inode) {
	if known == nil {
		m.Format, m.Host = string(lockfact.None), in.host.String()
		return
	}
	m.Format, m.Holder, m.Host, m.Pid = string(known.Format), known.Holder, known.Host, uint32(known.PID)
}

func withoutLineage(by *storepb.Caller) *storepb.Caller {
	if by == nil {
		return nil
	}
	return &storepb.Caller{Host: by.GetHost(), Uid: by.GetUid(), Gid: by.GetGid(), Pid: by.GetPid()}
}

// emitStolen tells of a lock that was taken over while it had another holder.
func (ns *Namespace) emitStolen(before, after *entry, old, in *inode, by *storepb.Caller) {
	m := ns.lockEvent(eventStolen, after, in, by)
	m.Previous = &storepb.Event{Token: before.token, Mode: old.mode, Uid: old.uid, Gid: old.gid}
	describeHolder(m.Previous, before.known, old)
	sum := sha256.Sum256(old.content)
	m.PreviousHash = "sha256:" + hex.EncodeToString(sum[:])
	ns.emit(m)
}

// emitReleased tells that a program took a name away, if it was known to be a lock. request is on whose behalf,
// if the program said so.
func (ns *Namespace) emitReleased(e *entry, in *inode, by *storepb.Caller, reason, request string) {
	if e = ns.announceBefore(e, in); !e.announced {
		return
	}
	if reason == "" && e.stale != nil {
		reason = "it was stale: " + e.stale.reason
	}
	m := ns.lockEvent(eventReleased, e, in, by)
	m.Reason, m.Request = reason, request
	ns.emit(m)
}

func (ns *Namespace) emitRefused(e *entry, in *inode, by *storepb.Caller, reason string) {
	e = ns.announceBefore(e, in)
	m := ns.lockEvent(eventRefused, e, in, by)
	m.Reason = reason
	ns.emit(m)
}

// LastEvent is the number of the last event; 0: there was none.
func (ns *Namespace) LastEvent() uint64 { return ns.lastEvent }

// Events answers events after one, in order, at most limit of them.
func (ns *Namespace) Events(after uint64, limit int) []*storepb.Event {
	var events []*storepb.Event
	if after >= ns.lastEvent {
		return nil
	}
	ns.events.Ascend(after+1, func(_ uint64, e *storepb.Event) bool {
		events = append(events, e)
		return len(events) < limit
	})
	return events
}

// EventCounts calls visit with how often each event has happened, ever.
func (ns *Namespace) EventCounts(visit func(event string, count uint64)) {
	ns.eventCounts.Scan(func(event string, count uint64) bool {
		visit(event, count)
		return true
	})
}
