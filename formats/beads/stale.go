package beads

import (
	"os"
	"strings"

	"lockfs/formats/internal/lockfile"
)

// Stale reports whether the lock's process is provably dead ("Stale Lock Detection"). On a lockfs mount,
// [Check] knows more.
func (e *ExclusiveLock) Stale() bool { return !IsProcessAlive(e.PID, e.Hostname) }

// IsProcessAlive reports whether the holder of a lock may still run ("Stale Lock Detection"). It is false
// only if hostname is this host's, ignoring case, and the system has no such process (ESRCH). It is true for
// other hosts, for a process of another user (EPERM), and for a number that cannot be a process.
func IsProcessAlive(pid int, hostname string) bool {
	here, err := os.Hostname()
	if err != nil || !strings.EqualFold(hostname, here) {
		return true
	}
	return !lockfile.ProvablyDead(pid)
}
