package speed

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

// BenchmarkFailover measures the time from kill -9 of the leader to the next successful exclusive create
// on a survivor, twenty times:
//
//	go test ./test/speed -run '^$' -bench Failover -benchtime 1x
func BenchmarkFailover(b *testing.B) {
	c := testcluster.StartCluster(b, 3)
	var took []float64
	for range b.N {
		for range 20 {
			leader := c.Leader()
			survivor := c.Others(leader)[0]
			lock := c.Path(fmt.Sprintf("lock%d", len(took)))
			began := time.Now()
			leader.Kill()
			survivor.Host.MustRun(b, "sh", "-c", "set -C; echo held > "+lock)
			took = append(took, float64(time.Since(began).Milliseconds()))
			leader.Start(b)
		}
	}
	b.Logf("all, in ms: %v", took)
	b.ReportMetric(stats.Quantile(took, 0.5), "ms-median")
	b.ReportMetric(slices.Max(took), "ms-worst")
	b.ReportMetric(0, "ns/op")
}

const (
	pollers    = 100
	pollEvery  = 0.1 // seconds
	pollLength = 60  // seconds
)

// BenchmarkPollers runs 100 client mounts against three servers, each polling one held lock every 100 ms
// for a minute:
//
//	go test ./test/speed -run '^$' -bench Pollers -benchtime 1x -timeout 20m
func BenchmarkPollers(b *testing.B) {
	c := testcluster.StartCluster(b, 3)
	lock := "held"
	c.Nodes[0].Host.MustRun(b, "sh", "-c", "set -C; echo held > "+c.Path(lock))
	clients := c.AddClient(b, "clients")
	dirs := make([]string, pollers)
	for i := range dirs {
		dirs[i] = filepath.Join(c.Net.Dir(), fmt.Sprintf("m%d", i))
		p := clients.Start(c.Program, append([]string{"mount", "--name", fmt.Sprintf("m%d", i), dirs[i]}, c.MountFlags(b, fmt.Sprintf("m%d", i), c.Servers())...)...)
		require.NoError(b, p.WaitOutput("lockfs: ready at "))
	}
	script := testcluster.ClientPath(b, "poll.py")
	b.ResetTimer()
	for range b.N {
		before := usageOf(b, c)
		p99 := poll(b, clients, script, dirs, lock)
		after := usageOf(b, c)
		var cpu, memory float64
		for i := range before {
			cpu += after[i].cpu - before[i].cpu
			memory = max(memory, after[i].memory)
		}
		b.ReportMetric(100*cpu/pollLength, "%cpu-all-servers")
		b.ReportMetric(memory, "MiB-largest-server")
		b.ReportMetric(p99, "us-p99")
	}
	b.ReportMetric(0, "ns/op")
}

// poll runs a poller on each mount and answers the median of their 99th percentiles.
func poll(b *testing.B, h *hosts.Host, script string, dirs []string, lock string) float64 {
	b.Helper()
	var mu sync.Mutex
	var p99s []float64
	var polling sync.WaitGroup
	for _, dir := range dirs {
		p := h.Start("python3", script, filepath.Join(dir, lock), fmt.Sprint(pollEvery), fmt.Sprint(pollLength))
		polling.Go(func() {
			<-p.Ended()
			var count int
			var median, p99 float64
			if _, err := fmt.Sscan(p.Stdout(), &count, &median, &p99); err == nil {
				mu.Lock()
				defer mu.Unlock()
				p99s = append(p99s, p99)
			}
		})
	}
	polling.Wait()
	require.Len(b, p99s, len(dirs), "pollers that came to an end")
	return stats.Quantile(p99s, 0.5)
}

// usage is what a server has used of the machine.
type usage struct {
	cpu    float64 // seconds
	memory float64 // MiB
}

// ticksPerSecond is USER_HZ, which is 100 on every Linux machine.
const ticksPerSecond = 100

func usageOf(b *testing.B, c *testcluster.Cluster) []usage {
	b.Helper()
	used := make([]usage, len(c.Nodes))
	for i, n := range c.Nodes {
		used[i] = usageOfProcess(b, n.Server)
	}
	return used
}

func usageOfProcess(b *testing.B, p *hosts.Process) (used usage) {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	require.NoError(b, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	for _, field := range fields[11:13] { // utime, stime (proc_pid_stat(5))
		ticks, err := strconv.ParseFloat(field, 64)
		require.NoError(b, err)
		used.cpu += ticks / ticksPerSecond
	}
	pages, err := strconv.ParseFloat(fields[21], 64) // rss
	require.NoError(b, err)
	used.memory = pages * float64(os.Getpagesize()) / (1 << 20)
	return used
}
