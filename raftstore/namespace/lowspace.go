package namespace

import (
	"fmt"

	"lockfs/raftstore/storepb"
)

// sizeClass is the step by which an inode grows while a disk is short of space, in bytes. So a lock of any
// size can be renewed with a somewhat longer content.
const sizeClass = 1 << 10

// refuseGrowth refuses to grow an inode from one size to another while a voter's disk is short of space; nil:
// it may grow. Removals, releases, moves and locks never come here: they make room or leave nothing behind.
// Root is bound too, since all data is on the same disks.
func (ns *Namespace) refuseGrowth(before, after int64) *storepb.Result {
	short := ns.lowSpaceAlarm()
	if short == nil || (after+sizeClass-1)/sizeClass <= (before+sizeClass-1)/sizeClass {
		return nil
	}
	return &storepb.Result{Code: storepb.Code_NO_SPACE, Message: fmt.Sprintf(
		"the disk of server %s is short of space: until it has some, things can only be removed, released and renewed; see `lockfs alarm list`",
		short.GetName(),
	)}
}

// lowSpaceAlarm returns the alarm of a voter short of disk space, or nil.
func (ts *state) lowSpaceAlarm() (short *storepb.Alarm) {
	ts.alarms.byNumber.Scan(func(_ uint64, a *storepb.Alarm) bool {
		if a.GetKind() == AlarmNoSpace {
			short = a
		}
		return short == nil
	})
	return short
}
