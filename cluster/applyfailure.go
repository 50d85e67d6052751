package cluster

import (
	"errors"
	"fmt"
	"log/slog"

	"lockfs/raftstore"
	"lockfs/raftstore/codec"
)

// explainApplyFailure says why this node stops at an entry, and what to do: after a restart it would
// reach the same entry.
func explainApplyFailure(err error, dataDir string, logger *slog.Logger) error {
	if distrusted := new(raftstore.DistrustedError); errors.As(err, &distrusted) {
		return distrusted
	}
	entry := new(raftstore.ApplyError)
	if !errors.As(err, &entry) {
		return fmt.Errorf("the leader's snapshot: %w", err)
	}
	next := "every member of this version stops there, and again when it is started: run another version on all of them, " +
		"a newer one or the one before"
	switch {
	case errors.Is(err, codec.ErrNewer):
		next = "earlier entries are kept, and that program continues from there"
	case errors.Is(err, codec.ErrOlder):
		next = "earlier entries are kept, and that version continues from there"
	case errors.Is(err, codec.ErrCorrupt):
		next = "start it again: it then checks its data"
	default:
		logger.Error("panic while a command was applied", "index", entry.Index, "stack", string(entry.Stack))
	}
	return fmt.Errorf("%w; %s. `lockfs server inspect --data %s %d` shows the entry", err, next, dataDir, entry.Index)
}
