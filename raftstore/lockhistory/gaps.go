package lockhistory

import (
	"slices"

	"lockfs/raftstore/storepb"
)

// gaps are the numbers of events before which others are missing, or with which a cluster goes on for one that was lost: earlier events say
// nothing of what comes after.
type gaps []uint64

func gapsOf(events []*storepb.Event) (all gaps) {
	for i, e := range events {
		if i > 0 && (e.GetNumber() != events[i-1].GetNumber()+1 || len(e.GetBefore()) == 0 && e.GetEvent() == "cluster_begun") {
			all = append(all, e.GetNumber())
		}
	}
	return all
}

// before returns how many gaps are before an event.
func (all gaps) before(e *storepb.Event) int {
	i, _ := slices.BinarySearch(all, e.GetNumber()+1)
	return i
}
