package page

import (
	"os"
	"testing"

	"lockfs/test/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }
