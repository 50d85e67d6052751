package hosts

import (
	"testing"
	"time"
)

// Eventually waits until cond holds, and fails the test after a timeout with the last value of seen. It is
// for conditions outside of this process that can only be polled.
func Eventually(t testing.TB, what string, cond func() (seen string, ok bool)) {
	t.Helper()
	const interval = 20 * time.Millisecond
	var seen string
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(interval) {
		var ok bool
		if seen, ok = cond(); ok {
			return
		}
	}
	t.Fatalf("%s: not within %v; last seen: %s", what, Patience, seen)
}
