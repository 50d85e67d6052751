// Package page shows what an operator sees of a cluster in a browser: a headless Chromium, on the page that lockfs ui opens.
package page

import (
	"os"
	"testing"

	"lockfs/test/suite"
)

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
