package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/history"
	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A scripted is a client of a history that does what it is told, call by call.
type scripted struct {
	t      testing.TB
	plan   *history.Plan
	worker *hosts.Process
	fifo   *os.File
	told   int
}

// startScripted starts a client in a directory of the mount.
func startScripted(t testing.TB, c *testcluster.Cluster, host *hosts.Host, dir string, number int) *scripted {
	t.Helper()
	below, err := filepath.Rel(c.Mount, dir)
	require.NoError(t, err)
	base := filepath.Join(c.Net.Dir(), fmt.Sprintf("%s-%d", strings.ReplaceAll(below, "/", "-"), number))
	plan := &history.Plan{
		Host: host.Name(), Dirs: []string{dir}, Client: number, Record: base + ".calls", Script: base + ".script",
	}
	require.NoError(t, unix.Mkfifo(plan.Script, 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	s := &scripted{t: t, plan: plan, worker: host.Start(self, plan.Args()...)}
	// For reading too, so as not to wait for the worker.
	s.fifo, err = os.OpenFile(plan.Script, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.fifo.Close() })
	return s
}

// tell has calls done in turn, and does not wait for them.
func (s *scripted) tell(calls ...string) {
	s.t.Helper()
	for _, call := range calls {
		_, err := fmt.Fprintln(s.fifo, call)
		require.NoError(s.t, err)
		s.told++
	}
}

// wait waits until all calls have returned.
func (s *scripted) wait() {
	s.t.Helper()
	require.NoError(s.t, s.worker.WaitOutput(fmt.Sprintf("done %d\n", s.told)))
}

func (s *scripted) do(calls ...string) {
	s.t.Helper()
	s.tell(calls...)
	s.wait()
}

// recorded is all that some clients have seen.
func recorded(t testing.TB, clients ...*scripted) []*history.Call {
	t.Helper()
	var records []string
	for _, s := range clients {
		records = append(records, s.plan.Record)
	}
	calls, err := history.ReadCalls(records...)
	require.NoError(t, err)
	return calls
}
