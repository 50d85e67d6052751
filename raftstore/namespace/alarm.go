package namespace

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// The kinds of alarms.
const (
	// AlarmStateDiffers: the state of a node differs from the majority's. The node is not trusted any more.
	AlarmStateDiffers = "state_differs"
	// AlarmStateUndecided: states differ, and no majority agrees.
	AlarmStateUndecided = "state_undecided"
	// AlarmTwoProcesses: two processes run as one server, one of them on a copy of its data directory or
	// machine.
	AlarmTwoProcesses = "two_processes"
	// AlarmTwoHosts: two machines, or one and its clone, mount under one host name.
	AlarmTwoHosts = "two_hosts"
	// AlarmNoSpace: the disk of a voter is short of space. Until it is cleared, nothing may grow.
	AlarmNoSpace = "no_space"
)

// Limits of alarms, which keep snapshots readable.
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

// clearAlarmsOf clears the alarms of a removed member about its disk space and its processes. The alarm about
// its state stays: its data is still not to be trusted if it comes back.
func (ns *Namespace) clearAlarmsOf(by *storepb.Caller, member string) {
	for _, kind := range []string{AlarmNoSpace, AlarmTwoProcesses} {
		if alarm := ns.alarms.find(kind, member); alarm != nil {
			ns.clearAlarm(by, alarm.GetNumber())
		}
	}
}

// Alarms returns the alarms in the order in which they were raised.
func (ns *Namespace) Alarms() []*storepb.Alarm { return ns.alarms.byNumber.Values() }

// Distrusted returns the alarm because of which a node is not trusted; nil: it is trusted.
func (ns *Namespace) Distrusted(node string) *storepb.Alarm {
	if ns.alarms.byNumber.Len() == 0 {
		return nil
	}
	return ns.alarms.find(AlarmStateDiffers, node)
}

// HasAlarm reports whether an alarm of a kind is raised for a node.
func (ns *Namespace) HasAlarm(kind, node string) bool { return ns.alarms.find(kind, node) != nil }
