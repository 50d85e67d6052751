package fusefs

import (
	"lockfs/fusefs/observation"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// place is a name in a directory, which need not exist, and who asks about it.
type place struct {
	caller *storepb.Caller
	parent ids.Inode
	name   []byte
}

// observed is the name as it is remembered.
func (at place) observed() observation.Name {
	return observation.Name{Parent: at.parent, Name: string(at.name)}
}

// nameOf is the name itself of what was seen under it, without the directories that it is in; nil if it is not known.
func nameOf(seen []*storepb.Observation) *storepb.Observation {
	if len(seen) == 0 {
		return nil
	}
	return seen[0]
}
