package operation

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/figures"
	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// twoMounts is a host with two mounts of one cluster.
func twoMounts(t testing.TB) (c *suite.Cluster, h *hosts.Host, second string) {
	t.Helper()
	c = suite.StartCluster(t, 1)
	h = c.Nodes[0].Host
	second = filepath.Join(c.Net.Dir(), "second")
	p := h.Start(c.Program, append([]string{"mount", "--name", "second", second}, c.MountFlags(t, "second", c.Servers())...)...)
	require.NoError(t, p.WaitOutput("lockfs: ready at "+second))
	return c, h, second
}

func TestBenchComparesMountsAndDisk(t *testing.T) {
	t.Parallel()
	c, h, second := twoMounts(t)
	disk := t.TempDir()
	text := h.MustRun(t, "sh", "-c", fmt.Sprintf("exec %s bench --json --duration 100ms --workers 3 %s %s %s 2> /dev/null",
		c.Program, c.Mount, second, disk))
	var report figures.Report
	require.NoError(t, json.Unmarshal([]byte(text), &report), text)
	require.Len(t, report.Directories, 3)
	require.Equal(t, "fuse.lockfs", report.Directories[1].Type)
	ofMounts := make(map[string]int)
	for _, r := range report.Results {
		require.Empty(t, r.Error)
		require.Positive(t, r.Count, r.Measurement)
		require.Positive(t, r.Median, r.Measurement)
		require.Positive(t, r.Ratio, r.Measurement)
		if r.Directories[0] != disk {
			ofMounts[r.Measurement+" "+fmt.Sprint(len(r.Directories))]++
		}
	}
	require.Equal(t, map[string]int{
		"cycle 1": 2, "mkdir 1": 2, "stat 1": 2, "cat 1": 2, "flock 1": 2, "list 1": 2,
		"handover-flock 2": 1, "handover-create 2": 1,
	}, ofMounts, "handovers are between the mounts")
	for _, dir := range []string{c.Mount, second, disk} {
		require.Empty(t, h.MustRun(t, "ls", "-A", dir))
	}
}

// TestBenchCleansUpWhenItIsTold interrupts it at work, and does the same with one that has no chance to.
func TestBenchCleansUpWhenItIsTold(t *testing.T) {
	t.Parallel()
	c, h, second := twoMounts(t)
	start := func() *hosts.Process {
		p := h.Start(c.Program, "bench", "--duration", "1m", "--only", "handover-flock,stat", c.Mount, second)
		hosts.Eventually(t, "it is at work", func() (string, bool) {
			files := h.MustRun(t, "find", c.Mount, "-mindepth", "2")
			return files + p.Log(), strings.Contains(files, "/lock")
		})
		return p
	}
	p := start()
	require.Error(t, p.Stop(), "SIGTERM")
	require.Contains(t, p.Log(), "lockfs: handover-flock in ")
	require.Contains(t, p.Log(), "interrupted by signal: terminated")
	require.Empty(t, h.MustRun(t, "ls", "-A", c.Mount))

	start().Kill()
	remains := strings.Fields(h.MustRun(t, "ls", "-A", c.Mount))
	require.Len(t, remains, 2)
	_, err := h.Run(c.Program, "bench", "--duration", "1ms", "--only", "mkdir", c.Mount)
	require.NoError(t, err)
	require.Equal(t, remains, strings.Fields(h.MustRun(t, "ls", "-A", c.Mount)))
}
