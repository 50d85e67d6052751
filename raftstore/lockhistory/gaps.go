package lockhistory

import (
	"slices"

	"lockfs/raftstore/storepb"
)

// gaps are the numbers of events after missing ones, and of events with which a cluster continues a lost one.
// Earlier events say nothing about later ones.
type gaps []uint64

func gapsOf(events []*storepb.Event) (all gaps) {
	for i, e := range events {
		if i > 0 && (e.GetNumber() != events[i-1].GetNumber()+1 || len(e.GetBefore()) == 0 && e.GetEvent() == "cluster_begun") {
			all = append(all, e.GetNumber())
		}
	}
	return all
}

func (all gaps) before(e *storepb.Event) int {
	i, _ := slices.BinarySearch(all, e.GetNumber()+1)
	return i
}
