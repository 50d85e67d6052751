package operation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

// TestBenchMeasuresAMount, and leaves nothing there.
func TestBenchMeasuresAMount(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.Nodes[0].Host
	text := h.MustRun(t, "sh", "-c", fmt.Sprintf("exec %s bench --json --duration 100ms --workers 3 %s 2> /dev/null", c.Program, c.Mount))
	var report stats.Report
	require.NoError(t, json.Unmarshal([]byte(text), &report), text)
	require.Len(t, report.Results, 8)
	for _, r := range report.Results {
		require.Empty(t, r.Error)
		require.Positive(t, r.Count, r.Measurement)
		require.Positive(t, r.Median, r.Measurement)
	}
	require.Empty(t, h.MustRun(t, "ls", "-A", c.Mount))
}

// TestBenchCleansUpWhenItIsInterrupted at work.
func TestBenchCleansUpWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.Nodes[0].Host
	p := h.Start(c.Program, "bench", "--duration", "1m", "--only", "handover-flock,stat", c.Mount)
	hosts.Eventually(t, "it is at work", func() (string, bool) {
		files := h.MustRun(t, "find", c.Mount, "-mindepth", "2")
		return files + p.Log(), strings.Contains(files, "/handover")
	})
	require.Error(t, p.Stop(), "SIGTERM")
	require.Contains(t, p.Log(), "lockfs: handover-flock in ")
	require.Contains(t, p.Log(), "interrupted by signal: terminated")
	require.Empty(t, h.MustRun(t, "ls", "-A", c.Mount))
}
