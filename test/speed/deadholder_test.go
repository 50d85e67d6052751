package speed

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

// BenchmarkDeadHolder measures the time from kill -9 of a lock's holder until a program that polls the lock
// on another host sees that it is gone, eleven times:
//
//	go test ./test/speed -run '^$' -bench DeadHolder -benchtime 1x
func BenchmarkDeadHolder(b *testing.B) {
	c := testcluster.StartCluster(b, 3)
	const poll = `echo polling; while [ -e "$1" ]; do sleep 0.001; done`
	var took []float64
	for range b.N {
		for range 11 {
			holder := c.StartHolder(b, c.Nodes[0].Host, "lock", testcluster.PidContent)
			poller := c.Nodes[1].Host.Start("sh", "-c", poll, "sh", c.Path("lock"))
			require.NoError(b, poller.WaitOutput("polling\n"))
			began := time.Now()
			holder.Process.Kill()
			require.NoError(b, poller.Wait())
			took = append(took, float64(time.Since(began).Milliseconds()))
		}
	}
	b.Logf("all, in ms: %v", took)
	b.ReportMetric(stats.Quantile(took, 0.5), "ms-median")
	b.ReportMetric(slices.Max(took), "ms-worst")
	b.ReportMetric(0, "ns/op")
}
