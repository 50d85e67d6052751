package namespace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// eventWriter writes the events of locks.
type eventWriter struct{ evaluator }

// The events of the audit trail.
const (
	eventAcquired        = "lock_acquired"       // a name was taken, or its content first named a holder
	eventReleased        = "lock_released"       // a program removed it
	eventStale           = "lock_stale"          // with the reason
	eventStolen          = "lock_stolen"         // another holder replaced its holder
	eventRemoved         = "lock_removed"        // by lockfs, or by force
	eventRefused         = "removal_refused"     // a guard prevented an accident
	eventFileRemoved     = "locked_file_removed" // while others held or awaited its flock or fcntl lock
	eventHostUnreachable = "host_unreachable"    // its last session ended without renewal
	eventHostBack        = "host_back"
	eventHostForgotten   = "host_forgotten" // an administrator declared it gone for good
	eventSessionEnded    = "session_ended"  // without renewal
	eventAlarmRaised     = "alarm_raised"
	eventAlarmCleared    = "alarm_cleared" // by an administrator, or because its cause is over

	// Acts of administrators and of the leader.
	eventClusterBegun     = "cluster_begun" // it got its id
	eventRuleSet          = "rule_set"
	eventRuleDeleted      = "rule_deleted"
	eventQuotaSet         = "quota_set"
	eventQuotaDeleted     = "quota_deleted"
	eventMemberAdded      = "member_added"
	eventMemberRemoved    = "member_removed"
	eventAuthorityAdded   = "authority_added"
	eventAuthorityDropped = "authority_dropped"
	eventTokenCreated     = "token_created"
	eventTokenRevoked     = "token_revoked"
	eventHostJoined       = "host_joined"
	eventHostRevoked      = "host_revoked"
	eventVersionRaised    = "version_raised"
	eventJoinRefused      = "join_refused" // a host was refused
)

func describeHolder(m *storepb.Event, known *facts, in *inode) {
	if known == nil {
		m.Format, m.Host = lockfact.None.String(), in.host.String()
		return
	}
	m.Format, m.Holder, m.Host, m.Pid = known.Format.String(), known.Holder, known.Host, uint32(known.PID)
}

func withoutLineage(by *storepb.Caller) *storepb.Caller {
	if by == nil {
		return nil
	}
	return &storepb.Caller{Host: by.GetHost(), Uid: by.GetUid(), Gid: by.GetGid(), Pid: by.GetPid()}
}

func (a *eventWriter) emit(e *storepb.Event) {
	e.Index = uint64(a.index)
	a.events.add(a.time, e)
}

// emitRebased emits the first event of a new chain: of a cluster that continues a lost one.
func (a *eventWriter) emitRebased(cluster string) {
	reason := "it continues a lost cluster without known events"
	if _, last, found := a.events.kept.Max(); found {
		reason = fmt.Sprintf("it continues the lost cluster %s; the last known event of that is %x", cmp.Or(a.trust.Cluster(), "without an id"), last.GetHash())
	}
	a.events.beginChain(a.time, &storepb.Event{Event: eventClusterBegun, Index: uint64(a.index), Cluster: cluster, Reason: reason})
}

// emitAction emits an event of an act on the cluster itself. host is its subject; empty: none.
func (a *eventWriter) emitAction(by *storepb.Caller, event, host, reason string) {
	a.emit(&storepb.Event{Event: event, Host: host, Reason: reason, By: withoutLineage(by)})
}

// lockEvent describes the lock of a name. by is the caller; nil: lockfs itself.
func (a *eventWriter) lockEvent(event string, e *entry, in *inode, by *storepb.Caller) *storepb.Event {
	m := &storepb.Event{
		Event: event, Path: []byte(a.tree.path(e)), Token: uint64(e.token), By: withoutLineage(by),
		Parent: uint64(e.parent), Mode: in.mode, Uid: in.uid, Gid: in.gid,
	}
	if g := a.effective(e, in); g.byCreator {
		m.Format, m.Holder, m.Host, m.Pid = g.Format.String(), g.Holder, g.Host, uint32(g.PID)
		return m
	}
	describeHolder(m, e.known, in)
	return m
}

// emitFileRemoved reports that a file loses its last name while other programs hold or wait for its flock or
// fcntl lock. The next program to create the name has another file, so both programs have a lock.
func (a *eventWriter) emitFileRemoved(remover ids.Session, e *entry, in *inode, by *storepb.Caller) {
	if !in.kernelLocked || in.nlink != 1 {
		return
	}
	held, waiting := a.locks.Others(in.ino, remover)
	if held+waiting == 0 {
		return
	}
	m := a.lockEvent(eventFileRemoved, e, in, by)
	m.Reason = fmt.Sprintf("%d other sessions' flock or fcntl locks and %d waiting requests are on the removed file", held, waiting)
	a.emit(m)
}

// emitStolen reports the takeover of a lock with another holder.
func (a *eventWriter) emitStolen(before, after *entry, old, in *inode, by *storepb.Caller) {
	m := a.lockEvent(eventStolen, after, in, by)
	m.Previous = &storepb.Event{Token: uint64(before.token), Mode: old.mode, Uid: old.uid, Gid: old.gid}
	describeHolder(m.Previous, before.known, old)
	sum := sha256.Sum256(old.content)
	m.PreviousHash = "sha256:" + hex.EncodeToString(sum[:])
	a.emit(m)
}
