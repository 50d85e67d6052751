package cluster

import (
	"errors"
	"fmt"

	"lockfs/raftstore"
	"lockfs/raftstore/codec"
)

// cannotApply ends the node at an entry that it cannot apply as the others do. It comes to the same entry when it is started
// again, so the reason says how to go on. If it leads, the others need not wait for the end of the process.
func (n *Node) cannotApply(err error) {
	defer n.silence.begin()
	entry := new(raftstore.ApplyError)
	if !errors.As(err, &entry) {
		n.fail(fmt.Errorf("the leader's snapshot: %w", err))
		return
	}
	next := "every member of this version stops there, and again when it is started: run another version on all of them, " +
		"a newer one or the one before"
	switch {
	case errors.Is(err, codec.ErrNewer):
		next = "all up to it is kept, and it goes on from there"
	case errors.Is(err, codec.ErrCorrupt):
		next = "start it again, for it checks its data then"
	default:
		n.logger.Error("panic while a command was applied", "index", entry.Index, "stack", string(entry.Stack))
	}
	n.fail(fmt.Errorf("%w; %s. `lockfs server inspect --data %s %d` shows the entry", err, next, n.cfg.DataDir, entry.Index))
}
