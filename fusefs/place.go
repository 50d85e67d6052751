package fusefs

import (
	"lockfs/fusefs/lookguard"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// place is a name in a directory, existing or not, and the caller.
type place struct {
	caller *storepb.Caller
	parent ids.Inode
	name   []byte
}

// observed returns the name as a key of observations.
func (at place) observed() lookguard.Name {
	return lookguard.Name{Parent: at.parent, Name: string(at.name)}
}

// nameOf returns the observation of the name itself, without its directories; nil if unknown.
func nameOf(seen []*storepb.Observation) *storepb.Observation {
	if len(seen) == 0 {
		return nil
	}
	return seen[0]
}
