package testcluster

import (
	"fmt"
	"os"
)

// longVariable is set by test/run long: what shows with some luck only is done many times.
const longVariable = "LOCKFS_TEST_LONG"

// Rounds is how often something is done that shows by luck only: few times, or many in a long run.
func Rounds(few, many int) int {
	if Long() {
		return many
	}
	return few
}

// Long tells whether this is a long run, in which what is the same each time but expensive is done too.
func Long() bool { return os.Getenv(longVariable) == "1" }

// soakVariable multiplies the number of faults, for longer runs.
const soakVariable = "LOCKFS_TEST_SOAK"

// Faults is how many faults a test has that has n in an ordinary run.
func Faults(n int) int {
	var times int
	if _, err := fmt.Sscan(os.Getenv(soakVariable), &times); err == nil && times > 1 {
		return n * times
	}
	return n
}
