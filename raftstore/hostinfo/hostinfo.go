// Package hostinfo reads facts of the kernel about the host and about this process.
package hostinfo

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime returns the time since the host's boot (CLOCK_BOOTTIME). That clock cannot be set. Unlike Go's
// monotonic clock, it runs while the host is suspended.
func BootTime() time.Duration { return clock() }

var clock = kernelClock

// Simulate sets the clock of a simulation. Call it before the first BootTime.
func Simulate(simulated func() time.Duration) { clock = simulated }

func kernelClock() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // cannot fail for this clock
	return time.Duration(now.Nano())
}

// PIDNamespace returns the inode number of this process's pid namespace in /proc.
func PIDNamespace() (uint64, error) {
	const path = "/proc/self/ns/pid"
	var namespace unix.Stat_t
	if err := unix.Stat(path, &namespace); err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return namespace.Ino, nil
}
