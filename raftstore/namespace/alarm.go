package namespace

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// The kinds of alarms.
const (
	// AlarmStateDiffers is of a node whose state was another one than the majority's: it is not trusted any more.
	AlarmStateDiffers = "state_differs"
	// AlarmStateUndecided is of states that were not the same where no majority had one.
	AlarmStateUndecided = "state_undecided"
	// AlarmTwoProcesses is of a server of which two processes run, one of them on a copy of its data directory or machine.
	AlarmTwoProcesses = "two_processes"
	// AlarmTwoHosts is of a host name under which two machines mount, or one and its clone.
	AlarmTwoHosts = "two_hosts"
	// AlarmNoSpace is of a voter whose disk is short of space: while there is one, nothing may grow.
	AlarmNoSpace = "no_space"
)

// Limits of alarms, so that a snapshot can always be read again.
const (
	maxAlarms = 1000
	maxAlarm  = 4 << 10 // bytes
)

func (ns *Namespace) raiseAlarm(alarm *storepb.Alarm) *storepb.Result {
	switch {
	case alarm.GetKind() == "" || proto.Size(alarm) > maxAlarm:
		return fail(storepb.Code_INVALID)
	case ns.alarms.find(alarm.GetKind(), alarm.GetNode()) != nil:
		return ok()
	case ns.alarms.byNumber.Len() >= maxAlarms:
		return fail(storepb.Code_NO_SPACE)
	}
	raised := proto.Clone(alarm).(*storepb.Alarm)
	raised.Number, raised.Since = uint64(ns.index), ns.time
	ns.alarms.byNumber.Set(raised.GetNumber(), raised)
	ns.emit(&storepb.Event{Event: eventAlarmRaised, Host: raised.GetName(), Reason: raised.GetKind() + ": " + raised.GetText()})
	return ok()
}

func (ns *Namespace) clearAlarm(by *storepb.Caller, number uint64) *storepb.Result {
	cleared, found := ns.alarms.byNumber.Delete(number)
	if !found {
		return &storepb.Result{Code: storepb.Code_NOT_FOUND, Message: fmt.Sprintf("there is no alarm %d; see `lockfs alarm list`", number)}
	}
	ns.emit(&storepb.Event{
		Event: eventAlarmCleared, Host: cleared.GetName(), By: withoutLineage(by), Reason: cleared.GetKind() + ": " + cleared.GetText(),
	})
	return ok()
}

// clearAlarmsOf clears what is over with a member that is removed: the space on its disk matters no more, and no process counts as that
// member. An alarm that its state differed stays: what it has is not to be trusted when it comes back.
func (ns *Namespace) clearAlarmsOf(by *storepb.Caller, member string) {
	for _, kind := range []string{AlarmNoSpace, AlarmTwoProcesses} {
		if alarm := ns.alarms.find(kind, member); alarm != nil {
			ns.clearAlarm(by, alarm.GetNumber())
		}
	}
}

// Alarms answers the alarms in the order in which they were raised.
func (ns *Namespace) Alarms() []*storepb.Alarm { return ns.alarms.byNumber.Values() }

// Distrusted answers why a node is not trusted any more; nil: it is.
func (ns *Namespace) Distrusted(node string) *storepb.Alarm {
	if ns.alarms.byNumber.Len() == 0 {
		return nil
	}
	return ns.alarms.find(AlarmStateDiffers, node)
}

// HasAlarm reports whether an alarm of a kind is raised for a node.
func (ns *Namespace) HasAlarm(kind, node string) bool { return ns.alarms.find(kind, node) != nil }
