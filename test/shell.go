package test

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

// A shell is one process on a host that does what it is told, step by step, so that other hosts can do
// something in between. The programs that it runs are in its process group.
type shell struct {
	t       testing.TB
	process *hosts.Process
	fifo    *os.File
	steps   int
	read    int // what of its output belongs to earlier steps
}

// What reads steps from a file, one a line, and does them in a directory. After each it prints its exit
// status.
const (
	bashSteps = `cd "$2" && exec 2>&1
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

func startShell(t testing.TB, h *hosts.Host, dir string) *shell {
	t.Helper()
	return startSteps(t, h, dir, "bash", "-c", bashSteps, "bash")
}

func startPython(t testing.TB, h *hosts.Host, dir string) *shell {
	t.Helper()
	return startSteps(t, h, dir, "python3", "-c", pythonSteps)
}

func startSteps(t testing.TB, h *hosts.Host, dir string, command ...string) *shell {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "steps")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	s := &shell{t: t, process: h.Start(command[0], append(command[1:], fifo, dir)...)}
	var err error
	s.fifo, err = os.OpenFile(fifo, os.O_RDWR, 0) // for reading too, so as not to wait for it
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.fifo.Close() })
	return s
}

// do does a step and answers what it printed; the error is an exit status other than 0.
func (s *shell) do(step string) (string, error) {
	s.t.Helper()
	return s.begin(step)()
}

// begin starts a step that others do something during. What it answers waits for its end.
func (s *shell) begin(step string) (ended func() (string, error)) {
	s.t.Helper()
	s.steps++
	_, err := fmt.Fprintln(s.fifo, step)
	require.NoError(s.t, err)
	last := fmt.Sprintf(" ended step %d\n", s.steps)
	return func() (string, error) {
		s.t.Helper()
		require.NoError(s.t, s.process.WaitOutput(last))
		output, _, _ := strings.Cut(s.process.Log()[s.read:], last)
		s.read += len(output) + len(last)
		end := strings.LastIndex(output, "\n")
		output, status := output[:end], output[end+1:]
		if status != "0" {
			return output, fmt.Errorf("%s: %s: exit status %s: %s", s.process.Host().Name(), step, status, output)
		}
		return output, nil
	}
}

// must does a step that has to succeed.
func (s *shell) must(step string) string {
	s.t.Helper()
	output, err := s.do(step)
	require.NoError(s.t, err)
	return output
}

// fails does a step that has to fail, and to say so in certain words.
func (s *shell) fails(step, words string) {
	s.t.Helper()
	_, err := s.do(step)
	require.ErrorContains(s.t, err, words)
}
