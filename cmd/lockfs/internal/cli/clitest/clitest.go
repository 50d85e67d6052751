// Package clitest runs commands of lockfs in tests as programs, with a standard output, a standard error and
// an exit code. The program is the test's own, which acts as lockfs if a variable says so.
package clitest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// asProgram is the variable that makes a test binary lockfs.
const asProgram = "LOCKFS_TEST_AS_PROGRAM"

// Main is for the init of a package's tests: if this process is to act as lockfs, it runs main and exits.
func Main(main func()) {
	if os.Getenv(asProgram) == "1" {
		main()
		os.Exit(0)
	}
}

// Outcome is the result of a program.
type Outcome struct {
	Stdout, Stderr string
	Code           int
}

// ProgramNamed returns a link with that name to the program.
func ProgramNamed(t testing.TB, name string) string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Symlink(program, link))
	return link
}

// Environment returns the environment for a program of [ProgramNamed], with more variables NAME=VALUE.
func Environment(more ...string) []string {
	// With -race, a process sleeps for a second before it exits.
	return append(append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0"), more...)
}

// Execute runs a program to its end.
func Execute(t testing.TB, environment []string, program string, args ...string) Outcome {
	t.Helper()
	cmd := exec.Command(program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &stdout, &stderr, Environment(environment...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return Outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}
