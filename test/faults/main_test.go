// Package faults shows that no promise is broken while processes die, hosts freeze, networks split, clocks are wrong and disks
// are damaged, by histories that are checked afterwards; and that the checks see the mistakes that lockfs could have.
package faults

import (
	"os"
	"testing"

	"lockfs/test/differential"
	"lockfs/test/history"
	"lockfs/test/testcluster"
)

func TestMain(m *testing.M) {
	history.Main()
	differential.Main()
	os.Exit(testcluster.Main(m))
}
