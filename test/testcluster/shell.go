package testcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/hosts"
)

// A Shell is a process on a host that runs step by step, so other hosts can do something in between. Its
// child programs are in its process group.
type Shell struct {
	t       testing.TB
	Process *hosts.Process
	Fifo    *os.File
	steps   int
	read    int // length of the output of earlier steps
}

// Programs that read steps from a file, one a line, and run them in a directory. After each step they print
// its exit status.
const (
	BashSteps = `cd "$2" && exec 2>&1
while IFS= read -r step <&3; do
	eval "$step" 3<&-
	status=$?
	printf '\n%s ended step %s\n' "$status" "$((steps += 1))"
done 3< "$1"`

	pythonSteps = `
import os, sys
os.chdir(sys.argv[2])
for number, step in enumerate(open(sys.argv[1]), 1):
    status = 0
    try:
        exec(step)
    except Exception as error:
        print(error)
        status = 1
    print("\n%d ended step %d" % (status, number), flush=True)`
)

// StartShell starts bash in a directory.
func StartShell(t testing.TB, h *hosts.Host, dir string) *Shell {
	t.Helper()
	return StartSteps(t, h, dir, "bash", "-c", BashSteps, "bash")
}

// StartPython starts a Python in a directory; its steps are lines of Python.
func StartPython(t testing.TB, h *hosts.Host, dir string) *Shell {
	t.Helper()
	return StartSteps(t, h, dir, "python3", "-c", pythonSteps)
}

// StartSteps starts a command with the path of the steps' file and a directory as its last arguments.
func StartSteps(t testing.TB, h *hosts.Host, dir string, command ...string) *Shell {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "steps")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	s := &Shell{t: t, Process: h.Start(command[0], append(command[1:], fifo, dir)...)}
	var err error
	s.Fifo, err = os.OpenFile(fifo, os.O_RDWR, 0) // also for reading, so as not to block
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Fifo.Close() })
	return s
}

// Do runs a step and returns its output; the error is an exit status other than 0.
func (s *Shell) Do(step string) (string, error) {
	s.t.Helper()
	return s.Begin(step)()
}

// Begin starts a step. The caller calls ended to wait for its end.
func (s *Shell) Begin(step string) (ended func() (string, error)) {
	s.t.Helper()
	s.steps++
	_, err := fmt.Fprintln(s.Fifo, step)
	require.NoError(s.t, err)
	last := fmt.Sprintf(" ended step %d\n", s.steps)
	return func() (string, error) {
		s.t.Helper()
		require.NoError(s.t, s.Process.WaitOutput(last))
		output, _, _ := strings.Cut(s.Process.Log()[s.read:], last)
		s.read += len(output) + len(last)
		end := strings.LastIndex(output, "\n")
		output, status := output[:end], output[end+1:]
		if status != "0" {
			return output, fmt.Errorf("%s: %s: exit status %s: %s", s.Process.Host().Name(), step, status, output)
		}
		return output, nil
	}
}

// Must runs a step and requires success.
func (s *Shell) Must(step string) string {
	s.t.Helper()
	output, err := s.Do(step)
	require.NoError(s.t, err)
	return output
}

// Fails runs a step and requires a failure with certain words.
func (s *Shell) Fails(step, words string) {
	s.t.Helper()
	_, err := s.Do(step)
	require.ErrorContains(s.t, err, words)
}
