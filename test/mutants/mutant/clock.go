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

	// clockRate is the rate of the monotonic clocks since a moment on CLOCK_BOOTTIME.
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

// ClockOffset returns the current offset of this program's wall clock from the host's.
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

// Drift returns the advance of a monotonic clock in a time.
func Drift(in time.Duration) time.Duration {
	if clockRate == 1 {
		return in
	}
	return time.Duration(clockRate * float64(in))
}

// BootTime returns a drifting clock based on CLOCK_BOOTTIME.
func BootTime(clock func() time.Duration) func() time.Duration {
	if clockRate == 1 {
		return clock
	}
	return func() time.Duration { return rateSince + Drift(clock()-rateSince) }
}
