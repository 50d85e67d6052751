package namespace

import (
	"lockfs/raftstore/digest"
	"lockfs/raftstore/storepb"
)

// alarms wait for an administrator.
type alarms struct {
	byNumber *digest.Map[uint64, *storepb.Alarm]
}

func newAlarms(d *digest.Digest) alarms { return alarms{digest.NewMap(d, alarmValue)} }

func (as *alarms) find(kind, node string) (found *storepb.Alarm) {
	as.byNumber.Scan(func(_ uint64, a *storepb.Alarm) bool {
		if a.GetKind() == kind && a.GetNode() == node {
			found = a
		}
		return found == nil
	})
	return found
}
