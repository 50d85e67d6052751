package audit

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain does without the log by which go test keeps results: it would meet the limit of withFileLimit.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.testlogfile", ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
