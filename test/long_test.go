package test

import "os"

// longVariable is set by test/run long: what shows with some luck only is done many times.
const longVariable = "LOCKFS_TEST_LONG"

func rounds(few, many int) int {
	if os.Getenv(longVariable) == "1" {
		return many
	}
	return few
}
