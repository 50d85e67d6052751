package test

import (
	"os"
	"testing"

	"lockfs/test/conformance"
	"lockfs/test/history"
	"lockfs/test/lockstep"
)

// TestMain makes room for the program, which the first test that needs it builds.
func TestMain(m *testing.M) {
	history.Main()
	conformance.Main()
	lockstep.Main()
	os.Exit(Main(m))
}
