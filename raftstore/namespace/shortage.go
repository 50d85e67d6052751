package namespace

import (
	"fmt"

	"lockfs/raftstore/storepb"
)

// sizeClass is by which steps an inode grows while a disk is short of space, in bytes: a lock of whatever size can be renewed
// with a content that is somewhat longer.
const sizeClass = 1 << 10

// refuseGrowth answers why what somebody makes or changes may not become larger, from so many bytes that count to so many: a
// voter's disk is short of space. nil: it may. What removes, releases, moves or locks never comes here: that makes room, or
// leaves nothing behind. Root is bound too, since all of it is on the same disks.
func (ns *Namespace) refuseGrowth(before, after int64) *storepb.Result {
	short := ns.shortage()
	if short == nil || (after+sizeClass-1)/sizeClass <= (before+sizeClass-1)/sizeClass {
		return nil
	}
	return &storepb.Result{Code: storepb.Code_NO_SPACE, Message: fmt.Sprintf(
		"the disk of server %s is short of space: until it has some, things can only be removed, released and renewed; see `lockfs alarm list`",
		short.GetName(),
	)}
}

// shortage answers the alarm of a voter whose disk is short of space; nil: there is none.
func (ts *tables) shortage() (short *storepb.Alarm) {
	ts.alarms.byNumber.Scan(func(_ uint64, a *storepb.Alarm) bool {
		if a.GetKind() == AlarmNoSpace {
			short = a
		}
		return short == nil
	})
	return short
}
