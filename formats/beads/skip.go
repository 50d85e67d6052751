package beads

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockfs/formats/lockfact"
)

// takeovers bounds how often ShouldSkipDatabase looks again because the lock that it was about to
// remove was gone.
const takeovers = 3

// ShouldSkipDatabase reports whether a daemon has to leave the database in beadsDir alone ("Daemon
// Behavior"):
//
//   - no lock file: false, and no holder;
//   - a lock whose process lives, or may: true and the holder;
//   - a stale lock: it is removed, false and its holder; if it cannot be removed, true and an error;
//   - a lock that cannot be read or is malformed: true and an error that says so.
//
// [LogLine] puts the three results into words.
func ShouldSkipDatabase(beadsDir string) (skip bool, holder string, err error) {
	path := filepath.Join(beadsDir, FileName)
	removed := ""
	for range takeovers {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, removed, nil
		}
		if err != nil {
			return true, "", fmt.Errorf("cannot read lock file: %w", err)
		}
		lock, err := Parse(content)
		if err != nil {
			return true, "", fmt.Errorf("malformed lock file: %w", err)
		}
		if IsProcessAlive(lock.PID, lock.Hostname) {
			return true, lock.Holder, nil
		}
		err = os.Remove(path)
		if err == nil {
			return false, lock.Holder, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return true, lock.Holder, fmt.Errorf("cannot remove stale lock: %w", err)
		}
		// Somebody else removed it, and another lock may be there by now.
		removed = lock.Holder
	}
	return true, removed, errors.New("the lock keeps changing")
}

// IsProcessAlive reports whether the holder of a lock may still run ("Stale Lock Detection"). It is
// false only when hostname is this host's, compared without case, and the system says that it has no
// such process (ESRCH). It is true for other hosts, for a process that may not be signalled (EPERM),
// and for a number that cannot be a process.
func IsProcessAlive(pid int, hostname string) bool {
	here, err := os.Hostname()
	if err != nil || !strings.EqualFold(hostname, here) {
		return true
	}
	return !isProvablyDead(pid)
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
