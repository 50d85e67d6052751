package beads

import (
	"context"
	"errors"
	"fmt"

	"lockfs/formats/lockfact"
)

// ShouldSkipDatabase reports whether a daemon must not use the database in beadsDir ("Daemon Behavior"):
//
//   - no lock file: false, and no holder;
//   - a lock whose process is or may be alive: true and the holder;
//   - a stale lock: false and its holder, after removal; if the removal fails, true and an error;
//   - an unreadable or malformed lock: true and an error.
//
// [LogLine] renders the three results. Only the stale lock is removed, even if other processes do the same
// and one acquires a lock meanwhile ([Acquire]). Locks of other hosts are never stale, except on a lockfs
// mount. It knows the processes of all hosts, and has mostly removed such locks already.
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

// LogLine returns the log line for a result of ShouldSkipDatabase ("Daemon Logging"); empty if there was no
// lock.
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
