// Package recipes does what the chapter recipes of the manual says, as it is printed there, on three hosts.
package recipes

import (
	"os"
	"testing"

	"lockfs/test/suite"
)

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
