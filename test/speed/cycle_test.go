package speed

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// benchRounds are enough for a median on a noisy machine.
const benchRounds = 1000

// BenchmarkCycle measures the cycle of a lock through the mount (exclusive create, write of 20 bytes,
// close, unlink) and stat of a held lock, each the median for one client:
//
//	go test ./test -run '^$' -bench Cycle -benchtime 1x
//
// "disk" is the same on the local disk that holds the data directories, without any fsync.
func BenchmarkCycle(b *testing.B) {
	b.Run("disk", func(b *testing.B) {
		net := hosts.New(b)
		b.ResetTimer()
		for range b.N {
			measure(b, net.Host("a"), net.Dir())
		}
	})
	b.Run("one-node", func(b *testing.B) {
		c := suite.StartCluster(b, 1)
		b.ResetTimer()
		for range b.N {
			measure(b, c.Nodes[0].Host, c.Mount)
		}
	})
	c := suite.StartCluster(b, 3)
	leader := c.Leader()
	b.Run("three-nodes-leader", func(b *testing.B) {
		for range b.N {
			measure(b, leader.Host, c.Mount)
		}
	})
	b.Run("three-nodes-follower", func(b *testing.B) {
		for range b.N {
			measure(b, c.Others(leader)[0].Host, c.Mount)
		}
	})
}

func measure(b *testing.B, h *hosts.Host, dir string) {
	b.Helper()
	script := suite.ClientPath(b, "cycle.py")
	out := h.MustRun(b, "python3", script, dir, fmt.Sprint(benchRounds))
	var cycle, stat float64
	_, err := fmt.Sscan(out, &cycle, &stat)
	require.NoError(b, err, out)
	b.ReportMetric(cycle, "us/cycle")
	b.ReportMetric(stat, "us/stat")
	b.ReportMetric(0, "ns/op")
}
