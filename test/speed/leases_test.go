package speed

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// BenchmarkHeldStat measures the median of a stat of a held lock at the leader, at a follower and at a client, with leases and without:
//
//	go test ./test/speed -run '^$' -bench HeldStat -benchtime 1x
func BenchmarkHeldStat(b *testing.B) {
	for _, leases := range []string{"off", "on"} {
		b.Run("leases="+leases, func(b *testing.B) {
			c := testcluster.StartCluster(b, 3, "--leases="+leases)
			g := c.AddGuest(b, "m")
			g.Start(b)
			lock := c.Path("held")
			leader := c.Leader()
			leader.Host.MustRun(b, "sh", "-c", "set -C; echo held > "+lock)
			b.ResetTimer()
			for range b.N {
				b.ReportMetric(medianStat(b, leader.Host, lock), "us-leader")
				b.ReportMetric(medianStat(b, c.Others(leader)[0].Host, lock), "us-follower")
				b.ReportMetric(medianStat(b, g.Host, lock), "us-client")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// medianStat is in microseconds.
func medianStat(b *testing.B, host *hosts.Host, path string) float64 {
	b.Helper()
	const script = `
import os, sys, time
took = []
end = time.monotonic() + 3
while time.monotonic() < end:
    began = time.monotonic()
    os.stat(sys.argv[1])
    took.append(time.monotonic() - began)
took = sorted(took[len(took) // 3:])
print(took[len(took) // 2] * 1e6)
`
	var median float64
	_, err := fmt.Sscan(host.MustRun(b, "python3", "-c", script, path), &median)
	require.NoError(b, err)
	return median
}
