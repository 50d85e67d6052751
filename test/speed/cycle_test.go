package speed

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

// BenchmarkCycle measures the cycle of a lock through the mount (exclusive create, write of 20 bytes,
// close, unlink) and stat of a held lock, each the median for one client:
//
//	go test ./test/speed -run '^$' -bench Cycle -benchtime 1x
//
// "disk" is the same on the local disk that holds the data directories, without any fsync.
func BenchmarkCycle(b *testing.B) {
	b.Run("disk", func(b *testing.B) {
		net := hosts.New(b)
		b.ResetTimer()
		for range b.N {
			measure(b, testcluster.Program(b), net.Host("a"), net.Dir())
		}
	})
	b.Run("one-node", func(b *testing.B) {
		c := testcluster.StartCluster(b, 1)
		b.ResetTimer()
		for range b.N {
			measure(b, c.Program, c.Nodes[0].Host, c.Mount)
		}
	})
	c := testcluster.StartCluster(b, 3)
	leader := c.Leader()
	b.Run("three-nodes-leader", func(b *testing.B) {
		for range b.N {
			measure(b, c.Program, leader.Host, c.Mount)
		}
	})
	b.Run("three-nodes-follower", func(b *testing.B) {
		for range b.N {
			measure(b, c.Program, c.Others(leader)[0].Host, c.Mount)
		}
	})
}

func measure(b *testing.B, program string, h *hosts.Host, dir string) {
	b.Helper()
	out := h.MustRun(b, program, "bench", "--json", "--only", "cycle,stat", dir)
	var report stats.Report
	require.NoError(b, json.Unmarshal([]byte(out), &report), out)
	for _, r := range report.Results {
		require.Empty(b, r.Error)
		b.ReportMetric(r.Median, "us/"+r.Measurement)
	}
	b.ReportMetric(0, "ns/op")
}
