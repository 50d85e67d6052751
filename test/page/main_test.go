package page

import (
	"os"
	"testing"

	"lockfs/test/suite"
)

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
