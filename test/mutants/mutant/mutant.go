// Package mutant is for the changes of package mutants. It selects at run time the changes in effect,
// so one program has all of them.
//
// LOCKFS_TEST_FAULT names the fault or the moment. Other variables set the rest:
//
//   - LOCKFS_TEST_COMPARE_INTERVAL: interval of the voters' state comparisons
//   - LOCKFS_TEST_CERTIFICATE_VALIDITY: validity of the certificates issued by a server
//   - LOCKFS_TEST_EAGER_LEASES=1: lease every answer possible
//   - LOCKFS_TEST_CLOCK_OFFSET=1h: the program's wall clock is an hour fast
//   - LOCKFS_TEST_CLOCK_FILE: a file with such an offset, read with each read of the clock, so that the clock
//     can jump and drift; without the file the clock is right
//   - LOCKFS_TEST_CLOCK_RATE=1.01@5000: the monotonic clocks of leases and sessions are fast by a hundredth
//     since 5000 ns on CLOCK_BOOTTIME
package mutant

import (
	"bytes"
	"context"
	"os"
	"slices"
	"syscall"
	"time"
)

// Variable names the program's fault.
const Variable = "LOCKFS_TEST_FAULT"

var chosen = os.Getenv(Variable)

// On reports whether the program has a fault.
func On(name string) bool { return name == chosen }

// ApplyTime returns the time of a command: its stamp, or with the fault the time of this process.
func ApplyTime(name string, stamp int64) int64 {
	if On(name) {
		return time.Now().UnixNano()
	}
	return stamp
}

// Without returns the list without a value, in place.
func Without[T comparable](list []T, value T) []T {
	return slices.DeleteFunc(list, func(of T) bool { return of == value })
}

// Pause lets other goroutines run.
func Pause() { time.Sleep(time.Millisecond) }

// LoseAnswer waits until the caller abandons a creation, if its answer should be lost.
func LoseAnswer(ctx context.Context, name []byte) error {
	if !On("lose-answers") || !bytes.HasPrefix(name, []byte("untold")) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// Die kills this process at a moment named by LOCKFS_TEST_FAULT.
func Die(moment string) {
	if On(moment) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// EagerLeases reports whether every possible answer is leased.
func EagerLeases() bool { return eagerLeases }

var eagerLeases = os.Getenv("LOCKFS_TEST_EAGER_LEASES") == "1"

// CertificateValidity returns the validity of certificates issued by this program; 0: the default.
func CertificateValidity() time.Duration { return certificateValidity }

var certificateValidity = durationOf("LOCKFS_TEST_CERTIFICATE_VALIDITY")

// CompareInterval returns the interval of state comparisons.
func CompareInterval(usual time.Duration) time.Duration {
	if compareInterval != 0 {
		return compareInterval
	}
	return usual
}

var compareInterval = durationOf("LOCKFS_TEST_COMPARE_INTERVAL")

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

// OnlyFirst reports whether the nodes of this process know only the first cluster version.
func OnlyFirst() bool { return os.Getenv(OnlyFirstVariable) == "1" }

// OnlyFirstVariable is read at each start of a node.
const OnlyFirstVariable = "LOCKFS_TEST_ONLY_FIRST_VERSION"
