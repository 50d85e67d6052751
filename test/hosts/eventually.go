package hosts

import (
	"testing"
	"time"
)

// Eventually waits until cond holds and fails the test if it never does. Each
// time, cond also says what it saw; the last is printed. It is for conditions
// that can only be looked at, as those of the world outside this process.
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
