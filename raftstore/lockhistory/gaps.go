package lockhistory

import (
	"cmp"
	"slices"

	"lockfs/raftstore/storepb"
)

// gaps is where events are missing, and where a cluster goes on for one that was lost: what was before tells nothing of what comes after.
type gaps []gap

// gap is between two events.
type gap struct {
	number       uint64 // of the event after it
	before, from uint64 // indexes of the event before it and of the one after it
}

func gapsOf(events []*storepb.Event) (all gaps) {
	for i, e := range events {
		if i > 0 && (e.GetNumber() != events[i-1].GetNumber()+1 || len(e.GetBefore()) == 0 && e.GetEvent() == "cluster_begun") {
			all = append(all, gap{e.GetNumber(), events[i-1].GetIndex(), e.GetIndex()})
		}
	}
	return all
}

// before is how many gaps are before an event.
func (all gaps) before(e *storepb.Event) int {
	i, _ := slices.BinarySearchFunc(all, e.GetNumber()+1, func(g gap, number uint64) int { return cmp.Compare(g.number, number) })
	return i
}

// era is how many gaps are before a command; known is false for one that is in a gap.
func (all gaps) era(index uint64) (era int, known bool) {
	for _, g := range all {
		switch {
		case index >= g.from:
			era++
		case index > g.before:
			return 0, false
		}
	}
	return era, true
}
