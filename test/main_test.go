package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"lockfs/test/conformance"
	"lockfs/test/history"
	"lockfs/test/hosts"
	"lockfs/test/lockstep"
)

// TestMain makes room for the program, which the first test that needs it builds.
func TestMain(m *testing.M) {
	hosts.Main()
	history.Main()
	conformance.Main()
	lockstep.Main()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "lockfs-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		programDir = dir
		return m.Run()
	}())
}

// Variables for those who run the tests.
const (
	raceVariable    = "LOCKFS_TEST_RACE"    // 1: build the program with the race detector
	programVariable = "LOCKFS_TEST_PROGRAM" // path of a built program, to test that one
)

var programDir string

var buildProgram = sync.OnceValues(func() (string, error) {
	if built := os.Getenv(programVariable); built != "" {
		return filepath.Abs(built)
	}
	path := filepath.Join(programDir, "lockfs")
	args := []string{"build", "-buildvcs=false", "-o", path}
	if os.Getenv(raceVariable) == "1" {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/lockfs")...)
	cmd.Dir = ".."
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd.Args, err, output)
	}
	return path, nil
})

// program is the path of the built program.
func program(t testing.TB) string {
	t.Helper()
	path, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
