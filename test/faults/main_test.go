// Package faults shows that no promise is broken while processes die, hosts freeze, networks split, clocks are wrong and disks
// are damaged, by histories that are checked afterwards; and that the checks see the mistakes that lockfs could have.
package faults

import (
	"os"
	"testing"

	"lockfs/test/history"
	"lockfs/test/lockstep"
	"lockfs/test/suite"
)

func TestMain(m *testing.M) {
	history.Main()
	lockstep.Main()
	os.Exit(suite.Main(m))
}
