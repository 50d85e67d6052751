//go:build faults

package fault

import (
	"os"
	"syscall"
	"time"
)

var chosen = os.Getenv("LOCKFS_TEST_FAULT")

// Whether a mistake is made.
var (
	NoDedup         = chosen == "no-dedup"
	IgnoreCancel    = chosen == "ignore-cancel"
	UnverifiedReads = chosen == "unverified-reads"
	LateKeepalives  = chosen == "late-keepalives"
)

// CacheTime is how long the kernel may keep what it is told.
var CacheTime = func() time.Duration {
	if chosen == "stale-cache" {
		return 10 * time.Second
	}
	return 0
}()

// ApplyTime is the time of a command: that with which it was stamped, unless the mistake is made.
func ApplyTime(stamp int64) int64 {
	if chosen == "apply-clock" {
		return time.Now().UnixNano()
	}
	return stamp
}

// DieAnswering kills this process when a creation's result is on its way to the kernel.
func DieAnswering() {
	if chosen == "die-answering" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
