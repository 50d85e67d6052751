package namespace

import (
	"math"
	"time"

	"lockfs/raftstore/advisory"
	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Index returns the index of the last applied command.
func (ns *Namespace) Index() ids.Index { return ns.index }

// Time returns the cluster time of the last applied command.
func (ns *Namespace) Time() time.Time { return time.Unix(0, ns.time) }

// Inodes returns the number of inodes, orphans included.
func (ns *Namespace) Inodes() int { return ns.tree.inodes.Len() }

// Sessions returns the number of live sessions.
func (ns *Namespace) Sessions() int { return ns.sessions.live() }

// LiveSession is a live session.
type LiveSession struct {
	ID     ids.Session
	Host   string
	Active ids.Index // index of its last command
}

// LiveSessions appends the live sessions to a list, in the order of their ids.
func (ns *Namespace) LiveSessions(list []LiveSession) []LiveSession {
	ns.sessions.byID.Scan(func(id ids.Session, s *session) bool {
		if s.endedIndex == 0 {
			list = append(list, LiveSession{id, s.host, s.active})
		}
		return true
	})
	return list
}

// SessionLive reports whether a session exists and has not ended.
func (ns *Namespace) SessionLive(id ids.Session) bool {
	s, found := ns.sessions.byID.Get(id)
	return found && s.endedIndex == 0
}

// SessionHost returns the host of a live or ended session; empty: the session is unknown.
func (ns *Namespace) SessionHost(id ids.Session) string {
	s, found := ns.sessions.byID.Get(id)
	if !found {
		return ""
	}
	return s.host
}

// SessionBoot returns the boot in which a session was opened; empty: the session is unknown.
func (ns *Namespace) SessionBoot(id ids.Session) string {
	s, found := ns.sessions.byID.Get(id)
	if !found {
		return ""
	}
	return s.bootID
}

// Removed returns the inodes that lost their last names with the last command.
func (ns *Namespace) Removed() []Removal { return ns.removed }

// Ended returns the requests the last command made locks or changed otherwise.
func (ns *Namespace) Ended() []advisory.Request { return ns.locks.Ended() }

// Excludes reports whether an owner in another session holds a flock or fcntl lock in conflict with a
// request.
func (ns *Namespace) Excludes(holder ids.Session, owner ids.Owner, session ids.Session, wanted *storepb.TakeLock) bool {
	want, valid := advisory.Want(session, 0, budget.User{}, wanted)
	return valid && holder != session && ns.locks.Excludes(holder, owner, want)
}

// EndedWaits returns the locks of the requests of Ended.
func (ns *Namespace) EndedWaits() []*storepb.AwaitLock { return ns.locks.EndedWaits() }

// Waits returns the waiting lock requests of a session, in the order of their commands.
func (ns *Namespace) Waits(session ids.Session) []*storepb.AwaitLock { return ns.locks.Waits(session) }

// HasAdvisoryLocks reports whether a session has flock or fcntl locks, or requests for some.
func (ns *Namespace) HasAdvisoryLocks(session ids.Session) bool { return ns.locks.Has(session) }

// AwaitLock returns the outcome of a request. After leaving the queue, it is a lock if its owner has the
// requested range.
func (ns *Namespace) AwaitLock(q *storepb.AwaitLock) *storepb.Result { return fail(ns.locks.Await(q)) }

// Usage returns the use and the limits for all users together.
func (ns *Namespace) Usage() *storepb.FsStats { return ns.tree.usage.fsStats(0) }

// BytesLimited reports whether SetLimits has set the limit of bytes. Otherwise DefaultMaxBytes counts.
func (ns *Namespace) BytesLimited() bool { return ns.tree.usage.limits.maxBytes != 0 }

// LastEvent returns the number of the last event; 0: none.
func (ns *Namespace) LastEvent() uint64 { return ns.events.last }

// Events returns at most limit events after a number, in order.
func (ns *Namespace) Events(after uint64, limit int) []*storepb.Event {
	var events []*storepb.Event
	if after >= ns.events.last {
		return nil
	}
	ns.events.kept.Ascend(after+1, func(_ uint64, e *storepb.Event) bool {
		events = append(events, e)
		return len(events) < limit
	})
	return events
}

// EventsOf returns at most limit kept events of one class after a number.
func (ns *Namespace) EventsOf(class EventClass, after uint64, limit int) (events []*storepb.Event) {
	if after >= ns.events.last {
		return nil
	}
	ns.events.byClass[class].Ascend(after+1, func(number uint64) bool {
		e, _ := ns.events.kept.Get(number)
		events = append(events, e)
		return len(events) < limit
	})
	return events
}

// EventsWholeFrom returns the number of the first event after which none is missing. Before it, events of
// some classes may be kept while others between them are not. It takes time in proportion to the events.
func (ns *Namespace) EventsWholeFrom() uint64 { return ns.events.wholeFrom() }

// EventCounts visits the total number of each event.
func (ns *Namespace) EventCounts(visit func(event string, count uint64)) {
	ns.events.counts.Scan(func(event string, count uint64) bool {
		visit(event, count)
		return true
	})
}

// Members returns the members in the order of their ids.
func (ns *Namespace) Members() []*storepb.Member {
	members := make([]*storepb.Member, 0, ns.members.Len())
	ns.members.Scan(func(_ string, m *storepb.Member) bool {
		members = append(members, m)
		return true
	})
	return members
}

// Member returns nil for an unknown id.
func (ns *Namespace) Member(id string) *storepb.Member {
	m, _ := ns.members.Get(id)
	return m
}

// Counts returns the sizes of the tables, by names for people.
func (ns *Namespace) Counts() map[string]int {
	ts, locks := &ns.state, 0
	ts.tree.byName.Scan(func(e *entry) bool {
		if e.lock {
			locks++
		}
		return true
	})
	return map[string]int{
		"inodes": ts.tree.inodes.Len(), "names": ts.tree.byName.Len(), "locks": locks, "advisory_locks": ts.locks.Len(),
		"sessions": ts.sessions.byID.Len(), "hosts": ts.hosts.byName.Len(), "rules": ts.rules.byPattern.Len(),
		"events": ts.events.kept.Len(), "members": ts.members.Len(),
	}
}

// Due reports whether a Tick at that time would change anything.
func (ns *Namespace) Due(now int64) bool {
	next := ns.NextDue()
	due := next <= now && next < math.MaxInt64
	ns.eachTimedOut(now, func(*entry, *staleness) bool {
		due = true
		return false
	})
	return due
}

// NextDue returns the time from which a Tick changes something, host timeouts apart (AwaitsHosts).
// math.MaxInt64: never.
func (ns *Namespace) NextDue() int64 {
	next := int64(math.MaxInt64)
	if e, found := ns.tree.byDue.Min(); found && e.due < math.MaxInt64 {
		next = e.due + 1
	}
	if e, found := ns.tree.byPending.Min(); found {
		next = min(next, e.pending.until)
	}
	return min(next, ns.locks.NextDue(), ns.trust.NextDue())
}

// AwaitsHosts reports whether the timeout of a silent host may expire.
func (ns *Namespace) AwaitsHosts() bool {
	if ns.tree.timeouts.Len() == 0 {
		return false
	}
	silent := false
	ns.hosts.byName.Scan(func(_ string, h *host) bool {
		silent = h.sessions == 0
		return !silent
	})
	return silent
}
