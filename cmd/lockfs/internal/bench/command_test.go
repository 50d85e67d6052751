package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/figures"
)

func TestPrintBench(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printBench(&out, &figures.Report{
		Version: "v1", Cores: 2, Kernel: "Linux 6.1", Workers: 3, OwnDirs: true, Seconds: 0.5,
		Directories: []figures.Directory{{Path: "/a", Type: "ext4", Source: "/dev/vda"}, {Path: "/b", Type: "fuse.lockfs", Source: "lockfs"}},
		Results: []figures.Result{
			{Measurement: "cycle", Directories: []string{"/a"}, Count: 9, Median: 21.04, P99: 999.6, PerSecond: 40000.4, Ratio: 1},
			{Measurement: "cycle", Directories: []string{"/b"}, Count: 9, Median: 2504, P99: 1.2e6, PerSecond: 398.7, Ratio: 119.01},
			{Measurement: "flock", Directories: []string{"/b"}, Error: "no locks available"},
			{Measurement: "handover-flock", Directories: []string{"/a", "/b\n"}, Count: 9, Median: 1, P99: 2},
		},
	}))
	require.Equal(t, `lockfs v1 on Linux 6.1, 2 cores; 3 workers in directories of their own, 0.5s for each figure

/a  ext4         /dev/vda
/b  fuse.lockfs  lockfs

MEASUREMENT     MEDIAN  P99    PER SECOND  RATIO  DIRECTORY
cycle           21 us   1 ms   40000       1      /a
cycle           2.5 ms  1.2 s  399         119    /b
flock                                             /b: no locks available
handover-flock  1 us    2 us                      "/a + /b\n"
`, out.String())
}

func TestBenchCommand(t *testing.T) {
	dir := t.TempDir()
	cmd := Command()
	var out, progress bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&progress)
	cmd.SetArgs([]string{dir, "--json", "--duration", "1ms", "--only", "stat,cycle"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	var report figures.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &report))
	require.Len(t, report.Results, 2)
	require.NotEmpty(t, report.Version)
	require.Equal(t, "1 of 2: stat\n2 of 2: cycle\n", progress.String())
}
