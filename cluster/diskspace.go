package cluster

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// diskSpace is the leader's knowledge of the voters' disks. If one is short of space it raises an alarm,
// and nothing grows: a voter with a full disk is lost. This protects all voters, because any other may
// fail next.
type diskSpace struct {
	own      func() (free, minFree uint64)
	members  *members
	proposer *proposer
	logger   *slog.Logger

	mu      sync.Mutex
	reports map[string]spaceReport // by id of the voter
}

// spaceReport is a voter's report of its disk.
type spaceReport struct {
	free, min uint64 // bytes; min 0: not checked
	at        time.Time
}

func (d *diskSpace) note(voter string, free, minFree uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reports == nil {
		d.reports = make(map[string]spaceReport)
	}
	d.reports[voter] = spaceReport{free, minFree, time.Now()}
}

// lastReport returns a voter's recent report; false: none.
func (d *diskSpace) lastReport(voter string) (spaceReport, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	told, known := d.reports[voter]
	return told, known && time.Since(told.at) <= reachedWithin
}

// isShort and hasEnough leave a range between them, so that an alarm does not flap.
func (s spaceReport) isShort() bool   { return s.free < s.min }
func (s spaceReport) hasEnough() bool { return s.free >= s.min+s.min/4 }

// updateAlarms raises and clears alarms. The leader calls it periodically. The alarm of an unreachable
// voter stays.
func (d *diskSpace) updateAlarms() {
	free, minFree := d.own()
	d.note(d.members.dir.ID, free, minFree)
	raised := d.raised()
	for _, voter := range d.members.voters() {
		alarm := raised[voter.GetId()]
		delete(raised, voter.GetId())
		told, known := d.lastReport(voter.GetId())
		switch {
		case known && alarm == nil && told.isShort():
			d.raise(voter, told)
		case known && alarm != nil && told.hasEnough():
			d.clear(alarm)
		}
	}
	for _, alarm := range raised { // of former voters
		d.clear(alarm)
	}
}

// raised returns the present alarms, by voter.
func (d *diskSpace) raised() map[string]*storepb.Alarm {
	raised := make(map[string]*storepb.Alarm)
	d.members.raft.FSM.View(func(ns *namespace.Namespace) {
		for _, alarm := range ns.Alarms() {
			if alarm.GetKind() == namespace.AlarmNoSpace {
				raised[alarm.GetNode()] = alarm
			}
		}
	})
	return raised
}

func (d *diskSpace) raise(voter *storepb.Member, told spaceReport) {
	alarm := &storepb.Alarm{
		Kind: namespace.AlarmNoSpace, Node: voter.GetId(), Name: voter.GetName(), Text: fmt.Sprintf(
			"the disk of the data directory of server %s has %d MiB free besides its reserve, and is to have %d (--min-free): until there is more, "+
				"things can only be removed, released and renewed. The alarm is cleared by itself", voter.GetName(), told.free>>20, told.min>>20),
	}
	d.logger.Error("alarm: "+alarm.GetText(), "kind", alarm.GetKind(), "member", alarm.GetName())
	d.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_RaiseAlarm{RaiseAlarm: &storepb.RaiseAlarm{Alarm: alarm}}})
}

func (d *diskSpace) clear(alarm *storepb.Alarm) {
	d.logger.Info("an alarm is over", "kind", alarm.GetKind(), "member", alarm.GetName())
	d.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_ClearAlarm{ClearAlarm: &storepb.ClearAlarm{Number: alarm.GetNumber()}}})
}
