//go:build unix

package lockfile

import (
	"errors"
	"math"
	"syscall"
)

// ProvablyDead reports whether the system has no process pid. A number that means a process group to kill,
// or that does not fit, proves nothing.
func ProvablyDead(pid int) bool {
	if pid < 1 || pid > math.MaxInt32 {
		return false
	}
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
