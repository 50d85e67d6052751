// Package hostinfo answers what the kernel says of the host and of this process in it, to all parts that ask.
package hostinfo

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime answers for how long the host has been up (CLOCK_BOOTTIME). Nobody sets that clock, and it goes on while the host is
// suspended, unlike Go's monotonic one.
func BootTime() time.Duration { return clock() }

// clock is what BootTime answers from.
var clock = kernelClock

// Simulate has BootTime answer from a clock of a simulation, whose time is not the kernel's. It is for before anybody asks.
func Simulate(simulated func() time.Duration) { clock = simulated }

func kernelClock() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // cannot fail for this clock
	return time.Duration(now.Nano())
}

// PIDNamespace answers the inode number of the pid namespace that this process is in, as /proc shows it.
func PIDNamespace() (uint64, error) {
	const path = "/proc/self/ns/pid"
	var namespace unix.Stat_t
	if err := unix.Stat(path, &namespace); err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return namespace.Ino, nil
}
