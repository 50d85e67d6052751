package testcluster

import (
	"fmt"
	"os"
)

// longVariable is set by test/run long, for more repetitions.
const longVariable = "LOCKFS_TEST_LONG"

// Rounds returns the number of repetitions of a test with random results: few, or many in a long run.
func Rounds(few, many int) int {
	if Long() {
		return many
	}
	return few
}

// Long reports whether this is a long run, with expensive tests.
func Long() bool { return os.Getenv(longVariable) == "1" }

// soakVariable multiplies the number of faults, for longer runs.
const soakVariable = "LOCKFS_TEST_SOAK"

// Faults returns the number of faults for a test with n in an ordinary run.
func Faults(n int) int {
	var times int
	if _, err := fmt.Sscan(os.Getenv(soakVariable), &times); err == nil && times > 1 {
		return n * times
	}
	return n
}
