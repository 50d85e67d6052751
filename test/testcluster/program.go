package testcluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/mutants"
)

// Variables for test runs.
const (
	// ProgramVariable, FaultyVariable and NextVariable name built programs to test: without changes, with
	// those of package mutants, and of the next version. test/run sets them, so packages share the builds;
	// otherwise each package builds its own.
	ProgramVariable = "LOCKFS_TEST_PROGRAM"
	FaultyVariable  = "LOCKFS_TEST_FAULTY"
	NextVariable    = "LOCKFS_TEST_NEXT"
	// RaceVariable is 1 to build the programs with the race detector.
	RaceVariable = "LOCKFS_TEST_RACE"
)

// Main is the TestMain of each package. It runs the tests and returns the exit status. The first test that
// needs a program builds it. In the init process of a host it does not return.
func Main(m *testing.M) int {
	hosts.Main()
	dir, err := os.MkdirTemp("", "lockfs-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programDir = dir
	return m.Run()
}

var programDir string

// Program returns the path of the built program.
func Program(t testing.TB) string {
	t.Helper()
	path, err := buildProgram()
	require.NoError(t, err)
	return path
}

// FaultyProgram returns the path of a program with the changes of package mutants, controlled by
// LOCKFS_TEST_FAULT and LOCKFS_TEST_CLOCK_OFFSET.
func FaultyProgram(t testing.TB) string {
	t.Helper()
	path, err := buildFaulty()
	require.NoError(t, err)
	return path
}

// NextProgram returns the path of the program of the next version.
func NextProgram(t testing.TB) string {
	t.Helper()
	path, err := buildNext()
	require.NoError(t, err)
	return path
}

// NextFaultyProgram returns the path of the program of the next version with the changes of the
// FaultyProgram.
func NextFaultyProgram(t testing.TB) string {
	t.Helper()
	path, err := buildNextFaulty()
	require.NoError(t, err)
	return path
}

var (
	buildNextFaulty = sync.OnceValues(func() (string, error) {
		return build("", "lockfs-next-faulty", mutants.Next, mutants.Faults, mutants.Hooks)
	})
	buildNext    = sync.OnceValues(func() (string, error) { return build(NextVariable, "lockfs-next", mutants.Next) })
	buildProgram = sync.OnceValues(func() (string, error) { return build(ProgramVariable, "lockfs") })
	buildFaulty  = sync.OnceValues(func() (string, error) {
		return build(FaultyVariable, "lockfs-faulty", mutants.Faults, mutants.Hooks)
	})
)

// build builds the program with some sets of changes, unless the variable names an existing one.
func build(variable, name string, sets ...string) (string, error) {
	if built := os.Getenv(variable); built != "" {
		return filepath.Abs(built)
	}
	source, err := root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(programDir, name)
	args := []string{"build", "-buildvcs=false", "-o", path}
	if len(sets) > 0 {
		flag, err := overlay(sets...)
		if err != nil {
			return "", err
		}
		args = append(args, flag)
	}
	if os.Getenv(RaceVariable) == "1" {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/lockfs")...)
	cmd.Dir = source
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd.Args, err, output)
	}
	return path, nil
}

// FaultyFlag returns the flag for the go command to build a test with the changes of the FaultyProgram.
func FaultyFlag(t testing.TB) string {
	t.Helper()
	flag, err := overlay(mutants.Faults, mutants.Hooks)
	require.NoError(t, err)
	return flag
}

func overlay(sets ...string) (string, error) {
	source, err := root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(programDir, "overlay")
	if err != nil {
		return "", err
	}
	return mutants.Overlay(source, dir, sets...)
}

// root returns the root of the repository. Tests run below it.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no go.mod above the working directory")
}

// SourcePath returns the path of a file of the repository, named from its root.
func SourcePath(t testing.TB, name string) string {
	t.Helper()
	dir, err := root()
	require.NoError(t, err)
	return filepath.Join(dir, name)
}

// ClientPath returns the path of a program in test/clients.
func ClientPath(t testing.TB, name string) string {
	t.Helper()
	return SourcePath(t, filepath.Join("test/clients", name))
}
