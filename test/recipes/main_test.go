// Package recipes does what the chapter recipes of the manual says, as it is printed there, on three hosts.
package recipes

import (
	"os"
	"testing"

	"lockfs/test/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }
