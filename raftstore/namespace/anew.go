package namespace

import (
	"errors"
	"fmt"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Anew describes a cluster that continues from the state of a lost one.
type Anew struct {
	// Cluster is its id, drawn for it: servers of the lost cluster are told by theirs that they do not belong to this one.
	Cluster string
	// Survivor is the host that goes on with the key that it has; empty: none.
	Survivor string
	// ForgetHosts says that no key of the authority is left: all hosts come in anew.
	ForgetHosts bool
	// PastClock accepts a state with numbers that the clock has not reached ([ErrClockBehind]). They then rise above those of this
	// state, and with the clock among states of this kind; a state from before the wrong clock must not be used any more.
	PastClock bool
}

// ErrClockBehind reports a state with larger numbers than the wall clock gives: the clock is behind, or an earlier restore ran with
// a clock that was ahead.
var ErrClockBehind = errors.New("the clock is behind the numbers of the state")

const (
	// mostNumber is the largest integer up to which every JSON reader is exact (RFC 8259, section 6). Numbers stay below.
	mostNumber = 1<<53 - 1
	// clockEpoch is how far numbers jump for a clock that is behind them: nine years of microseconds.
	clockEpoch = 1 << 48
)

// firstNumber returns the number above which indexes (and with them fencing tokens), inode and event numbers continue. It is the
// wall clock in microseconds since 1970, and depends on nothing else: so it rises from each restore to the next, in whatever order
// the states of one history are restored, and although a state says nothing of the restores that came after it.
//
// A microsecond is room enough for what one number counts: a command is encoded, replicated and applied, and an event is hashed
// into a chain, at some ten thousand a second. Numbers stay below [mostNumber] until the year 2255.
func firstNumber(now time.Time, last uint64, pastClock bool) (uint64, error) {
	micros := now.UnixMicro()
	if micros < 0 {
		return 0, errors.New("the clock of this host says that it is before 1970: set it right")
	}
	first := uint64(micros)
	if first <= last {
		if !pastClock {
			return 0, fmt.Errorf("%w: they go up to %d, and at %s they would go on from %d. Set the clock right; it may also be that an earlier "+
				"restore ran with a clock that was ahead", ErrClockBehind, last, now.UTC().Format(time.RFC3339), first)
		}
		first += ((last-first)/clockEpoch + 1) * clockEpoch
	}
	if last > mostNumber || first > mostNumber-clockEpoch {
		return 0, fmt.Errorf("numbers up to %d leave no room for others at %s", last, now.UTC().Format(time.RFC3339))
	}
	return first, nil
}

// BeginAnew turns a state into the first one of a cluster that continues where another was lost. The state may lack the last
// commands of that cluster, and the numbers that these were given must not be given again: indexes, inode and event numbers
// continue from the wall clock ([firstNumber]). Session ids are random, and need no jump.
//
// Its sessions end, for they may rely on what is not known here any more: their flock and fcntl locks are kept from others for the
// lock delay, and hosts are silent until they mount again. It has no members and no join tokens, which may have been used up since. Hosts
// that were let in as servers are revoked, so that none comes back with what it has on its disk. Its events are a new chain, which says so. Alarms of states that differed are over. Nothing else is changed. now is the
// time on this host: the lock delay counts from then. The state is as if these had been commands, and its index is that of the last one.
//
// The error is [ErrClockBehind], or that the clock or the numbers are no possible ones. The state is then unchanged.
func (ns *Namespace) BeginAnew(now time.Time, anew Anew) error {
	last := max(uint64(ns.index), uint64(ns.tree.nextIno), ns.events.last)
	index, err := firstNumber(now, last, anew.PastClock)
	if err != nil {
		return err
	}
	ns.tree.nextIno, ns.events.last = ids.Inode(index), index
	do := func(op *storepb.Op) {
		index++
		ns.Apply(ids.Index(index), &storepb.Command{Time: now.UnixNano(), Op: op})
	}
	index++
	ns.index, ns.time = ids.Index(index), max(ns.time, now.UnixNano())
	ns.emitAnew(anew.Cluster)
	for _, s := range ns.sessions.liveSessions() {
		do(&storepb.Op{Op: &storepb.Op_EndSession{EndSession: &storepb.EndSession{Id: s.GetId(), IfActive: s.GetActive()}}})
	}
	for _, m := range ns.Members() {
		do(&storepb.Op{Op: &storepb.Op_RemoveMember{RemoveMember: &storepb.RemoveMember{Id: m.GetId()}}})
	}
	for _, alarm := range ns.Alarms() { // of voters that it has not; a survivor that was out of service is so no more: nobody else is left
		if alarm.GetKind() == AlarmStateDiffers || alarm.GetKind() == AlarmStateUndecided {
			do(&storepb.Op{Op: &storepb.Op_ClearAlarm{ClearAlarm: &storepb.ClearAlarm{Number: alarm.GetNumber()}}})
		}
	}
	for _, host := range ns.servers() {
		if host != anew.Survivor && !anew.ForgetHosts {
			do(&storepb.Op{Op: &storepb.Op_RevokeHost{RevokeHost: &storepb.RevokeHost{Name: host}}})
		}
	}
	ns.trust.BeginAnew(anew.Cluster, anew.ForgetHosts)
	do(&storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}) // there is one command at least
	return nil
}

// servers are the names of the hosts that are let in as servers.
func (ns *Namespace) servers() (names []string) {
	ns.EachAdmission(func(host *storepb.Admission) bool {
		if host.GetRole() == storepb.Role_SERVER && host.GetRevoked() == 0 {
			names = append(names, host.GetName())
		}
		return true
	})
	return names
}
