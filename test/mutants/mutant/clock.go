package mutant

import (
	"bytes"
	"fmt"
	"os"
	"time"
)

var (
	clockFile   = os.Getenv("LOCKFS_TEST_CLOCK_FILE")
	clockOffset = durationOf("LOCKFS_TEST_CLOCK_OFFSET")

	// clockRate is how many seconds the monotonic clocks advance in a second, since a moment on CLOCK_BOOTTIME.
	clockRate, rateSince = rateOf("LOCKFS_TEST_CLOCK_RATE")
)

func rateOf(variable string) (rate float64, since time.Duration) {
	text := os.Getenv(variable)
	if text == "" {
		return 1, 0
	}
	if _, err := fmt.Sscanf(text, "%g@%d", &rate, &since); err != nil {
		panic(err)
	}
	return rate, since
}

// ClockOffset returns by how much this program's wall clock is ahead of the host's, now.
func ClockOffset() time.Duration {
	if clockFile == "" {
		return clockOffset
	}
	text, err := os.ReadFile(clockFile)
	if err != nil {
		return 0
	}
	offset, err := time.ParseDuration(string(bytes.TrimSpace(text)))
	if err != nil {
		panic(err)
	}
	return offset
}

// Drift returns how far a monotonic clock advances in a time.
func Drift(in time.Duration) time.Duration {
	if clockRate == 1 {
		return in
	}
	return time.Duration(clockRate * float64(in))
}

// BootTime returns the clock that drifts, of the one that shows CLOCK_BOOTTIME.
func BootTime(clock func() time.Duration) func() time.Duration {
	if clockRate == 1 {
		return clock
	}
	return func() time.Duration { return rateSince + Drift(clock()-rateSince) }
}
