//go:build faults

package fault

import (
	"bytes"
	"context"
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
	IgnoreLooks     = chosen == "ignore-looks"
	LookAtData      = chosen == "look-at-data"
	AnyNumber       = chosen == "any-number"
	GuardLocked     = chosen == "guard-locked"
	FlipBit         = chosen == "flip-bit"
)

// CacheTime is how long the kernel may keep what it is told.
var CacheTime = func() time.Duration {
	if chosen == "stale-cache" {
		return 10 * time.Second
	}
	return 0
}()

// ClockOffset is by how much this program's wall clock is ahead of the host's.
var ClockOffset = durationOf("LOCKFS_TEST_CLOCK_OFFSET")

// CertificateValidity is how long the certificates are valid that this program gives; 0: as long as they are to be.
var CertificateValidity = durationOf("LOCKFS_TEST_CERTIFICATE_VALIDITY")

func durationOf(variable string) time.Duration {
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return duration
}

// CompareInterval is how often voters compare their states.
func CompareInterval(usual time.Duration) time.Duration {
	if interval, err := time.ParseDuration(os.Getenv("LOCKFS_TEST_COMPARE_INTERVAL")); err == nil {
		return interval
	}
	return usual
}

// ApplyTime is the time of a command: that with which it was stamped, unless the mistake is made.
func ApplyTime(stamp int64) int64 {
	if chosen == "apply-clock" {
		return time.Now().UnixNano()
	}
	return stamp
}

// LoseAnswer waits until nobody waits any more for the answer to a creation, if it is one that gets lost.
func LoseAnswer(ctx context.Context, name []byte) error {
	if chosen != "lose-answers" || !bytes.HasPrefix(name, []byte("untold")) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// DieAnswering kills this process when a creation's result is on its way to the kernel.
func DieAnswering() {
	if chosen == "die-answering" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
