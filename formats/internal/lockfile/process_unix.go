//go:build unix

package lockfile

import (
	"errors"
	"math"
	"syscall"
)

// ProvablyDead reports whether the system has no process pid. Numbers that kill would take for a group
// of processes, or cut to another number, prove nothing.
func ProvablyDead(pid int) bool {
	if pid < 1 || pid > math.MaxInt32 {
		return false
	}
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
