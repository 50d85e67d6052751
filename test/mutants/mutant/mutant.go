// Package mutant is called by the changes that package mutants makes to the program. It says at run time which of them take effect, so
// one program has all of them.
//
// LOCKFS_TEST_FAULT names the fault or the moment. These variables set what tests cannot wait for or reach otherwise:
//
//   - LOCKFS_TEST_COMPARE_INTERVAL: how often the voters compare their states
//   - LOCKFS_TEST_CERTIFICATE_VALIDITY: how long the certificates are valid that a server issues
//   - LOCKFS_TEST_EAGER_LEASES=1: all answers are leased that can be
//   - LOCKFS_TEST_CLOCK_OFFSET=1h: the program's wall clock is an hour fast
//   - LOCKFS_TEST_CLOCK_FILE: a file with such an offset, read whenever the clock is read, so that the clock can jump and drift; without the
//     file the clock is right
//   - LOCKFS_TEST_CLOCK_RATE=1.01@5000: the monotonic clocks, by which leases and sessions last, have been fast by a hundredth since 5000 ns
//     on CLOCK_BOOTTIME
package mutant

import (
	"bytes"
	"context"
	"os"
	"slices"
	"syscall"
	"time"
)

// Variable names the fault that the program has.
const Variable = "LOCKFS_TEST_FAULT"

var chosen = os.Getenv(Variable)

// On reports whether the program has a fault.
func On(name string) bool { return name == chosen }

// ApplyTime returns the time of a command: its stamp, or with a fault the time of this process.
func ApplyTime(name string, stamp int64) int64 {
	if On(name) {
		return time.Now().UnixNano()
	}
	return stamp
}

// Without returns a list without a value, in the place of the list.
func Without[T comparable](list []T, value T) []T {
	return slices.DeleteFunc(list, func(of T) bool { return of == value })
}

// Pause lets other goroutines do something.
func Pause() { time.Sleep(time.Millisecond) }

// LoseAnswer waits until the caller has given up on a creation, if its answer is to be lost.
func LoseAnswer(ctx context.Context, name []byte) error {
	if !On("lose-answers") || !bytes.HasPrefix(name, []byte("untold")) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// Die kills this process at a moment, if LOCKFS_TEST_FAULT names it.
func Die(moment string) {
	if On(moment) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// EagerLeases reports whether all answers are leased that can be.
func EagerLeases() bool { return eagerLeases }

var eagerLeases = os.Getenv("LOCKFS_TEST_EAGER_LEASES") == "1"

// CertificateValidity returns how long certificates are valid that this program issues; 0: as usual.
func CertificateValidity() time.Duration { return certificateValidity }

var certificateValidity = durationOf("LOCKFS_TEST_CERTIFICATE_VALIDITY")

// CompareInterval returns how often voters compare their states.
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

// OnlyFirst reports whether the nodes of this process know the first version of clusters only, while all else knows the next too.
func OnlyFirst() bool { return os.Getenv(OnlyFirstVariable) == "1" }

// OnlyFirstVariable is read whenever a node starts.
const OnlyFirstVariable = "LOCKFS_TEST_ONLY_FIRST_VERSION"
