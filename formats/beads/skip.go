package beads

import (
	"context"
	"errors"
	"fmt"

	"lockfs/formats/lockfact"
)

// ShouldSkipDatabase reports whether a daemon has to leave the database in beadsDir alone ("Daemon
// Behavior"):
//
//   - no lock file: false, and no holder;
//   - a lock whose process lives, or may: true and the holder;
//   - a stale lock: it is removed, false and its holder; if it cannot be removed, true and an error;
//   - a lock that cannot be read or is malformed: true and an error that says so.
//
// [LogLine] puts the three results into words. It removes no other lock than the stale one, also when many
// do this at once and one of them takes a lock meanwhile ([Acquire]). Locks of other hosts are never stale, but on a
// mount of lockfs, which knows whose process has ended, and mostly has removed those locks already.
func ShouldSkipDatabase(beadsDir string) (skip bool, holder string, err error) {
	stale, err := removeStale(context.Background(), beadsDir)
	var held *HeldError
	var malformed *MalformedError
	switch {
	case errors.As(err, &held):
		return true, held.Lock.Holder, nil
	case errors.As(err, &malformed):
		return true, "", err
	case err != nil && stale != nil:
		return true, stale.Holder, fmt.Errorf("cannot remove stale lock: %w", err)
	case err != nil:
		return true, "", err
	case stale != nil:
		return false, stale.Holder, nil
	}
	return false, "", nil
}

// LogLine is what a daemon logs after ShouldSkipDatabase ("Daemon Logging"); empty if there was no lock.
func LogLine(skip bool, holder string, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("Skipping database (lock check failed: %v)", err)
	case skip:
		return fmt.Sprintf("Skipping database (locked by %s)", lockfact.HolderName(holder))
	case holder != "":
		return fmt.Sprintf("Removed stale lock (%s), proceeding with sync", lockfact.HolderName(holder))
	}
	return ""
}
