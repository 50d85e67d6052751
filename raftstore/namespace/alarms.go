package namespace

import (
	"lockfs/raftstore/digest"
	"lockfs/raftstore/storepb"
)

// alarms are what administrators have to know of until they clear it.
type alarms struct {
	byNumber *digest.Map[uint64, *storepb.Alarm]
}

func newAlarms(d *digest.Digest) alarms { return alarms{digest.NewMap(d, alarmValue)} }

// find answers the alarm of a kind and a node; nil: there is none.
func (as *alarms) find(kind, node string) (found *storepb.Alarm) {
	as.byNumber.Scan(func(_ uint64, a *storepb.Alarm) bool {
		if a.GetKind() == kind && a.GetNode() == node {
			found = a
		}
		return found == nil
	})
	return found
}
