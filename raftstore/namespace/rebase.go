package namespace

import (
	"errors"
	"fmt"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// RebaseOptions describes a cluster that continues from the state of a lost one.
type RebaseOptions struct {
	// Cluster is a new random id. Servers of the lost cluster learn from it that they do not belong to this
	// one.
	Cluster string
	// Survivor is the host that keeps its key; empty: none.
	Survivor string
	// ForgetHosts says that no key of the authority is left, so all hosts join again.
	ForgetHosts bool
	// PastClock accepts a state with numbers beyond the clock ([ErrClockBehind]). The new numbers are above
	// those of this state, and rise with the clock among states of this kind. A state from before the wrong
	// clock must not be used any more.
	PastClock bool
}

// ErrClockBehind reports a state with larger numbers than the wall clock gives: the clock is behind, or an
// earlier restore ran with a clock that was ahead.
var ErrClockBehind = errors.New("the clock is behind the numbers of the state")

const (
	// maxNumber is the largest integer every JSON reader reads exactly (RFC 8259, section 6). Numbers stay
	// below.
	maxNumber = 1<<53 - 1
	// clockEpoch is the jump of the numbers for a clock behind them: nine years of microseconds.
	clockEpoch = 1 << 48
)

// firstNumber returns the number above which indexes, fencing tokens, inode and event numbers continue. It is
// the wall clock in microseconds since 1970, and depends on nothing else. So it rises from each restore to
// the next, in any order of restored states, although a state does not know of later restores.
//
// A microsecond is enough for each number: commands and events come at some ten thousand a second. Numbers
// stay below [maxNumber] until the year 2255.
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
	if last > maxNumber || first > maxNumber-clockEpoch {
		return 0, fmt.Errorf("numbers up to %d leave no room for others at %s", last, now.UTC().Format(time.RFC3339))
	}
	return first, nil
}

// Rebase turns a state into the first state of a cluster that continues a lost one. The state may lack the
// last commands of that cluster, and their numbers must not be used again. So indexes, inode and event
// numbers continue from the wall clock ([firstNumber]). Session ids are random and need no jump.
//
// Sessions end, since they may rely on lost commands. Their flock and fcntl locks stay reserved for the lock
// delay, and hosts are silent until they mount again. Members and join tokens are removed: tokens may have
// been used since. Hosts admitted as servers are revoked, except the survivor, so none returns with its old
// data. Events continue in a new chain, which says so. Alarms about differing states are cleared. All else
// stays.
//
// now is the time on this host, from which the lock delay counts. The state is as after ordinary commands,
// with the index of the last one.
//
// The error is [ErrClockBehind], or reports an impossible clock or impossible numbers. The state is then
// unchanged.
func (ns *Namespace) Rebase(now time.Time, anew RebaseOptions) error {
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
	ns.emitRebased(anew.Cluster)
	for _, s := range ns.sessions.liveSessions() {
		do(&storepb.Op{Op: &storepb.Op_EndSession{EndSession: &storepb.EndSession{Id: s.GetId(), IfActive: s.GetActive()}}})
	}
	for _, m := range ns.Members() {
		do(&storepb.Op{Op: &storepb.Op_RemoveMember{RemoveMember: &storepb.RemoveMember{Id: m.GetId()}}})
	}
	for _, alarm := range ns.Alarms() { // a survivor out of service serves again, alone
		if alarm.GetKind() == AlarmStateDiffers || alarm.GetKind() == AlarmStateUndecided {
			do(&storepb.Op{Op: &storepb.Op_ClearAlarm{ClearAlarm: &storepb.ClearAlarm{Number: alarm.GetNumber()}}})
		}
	}
	for _, host := range ns.servers() {
		if host != anew.Survivor && !anew.ForgetHosts {
			do(&storepb.Op{Op: &storepb.Op_RevokeHost{RevokeHost: &storepb.RevokeHost{Name: host}}})
		}
	}
	ns.trust.Rebase(anew.Cluster, anew.ForgetHosts)
	do(&storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}) // at least one command
	return nil
}

func (ns *Namespace) servers() (names []string) {
	ns.EachAdmission(func(host *storepb.Admission) bool {
		if host.GetRole() == storepb.Role_SERVER && host.GetRevoked() == 0 {
			names = append(names, host.GetName())
		}
		return true
	})
	return names
}
