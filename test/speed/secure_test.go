package speed

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/figures"
	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// BenchmarkTLS measures the cycle of a lock and a stat with certificates and without, on a follower of three servers and on a mount, where both go
// over the network:
//
//	go test ./test/speed -run '^$' -bench TLS -benchtime 5x
//
// Both clusters are there all the time and take turns, so that what else the machine does is shared by both. Each figure is the median
// of the rounds; %-more is by how much that with certificates is larger.
func BenchmarkTLS(b *testing.B) {
	type contestant struct {
		cluster *suite.Cluster
		hosts   map[string]*hosts.Host
		took    map[string][]float64
	}
	var contestants []*contestant
	for _, start := range []func(testing.TB, int, ...string) *suite.Cluster{suite.StartInsecureCluster, suite.StartSecureCluster} {
		c := start(b, 3)
		g := c.AddGuest(b, "m")
		g.Start(b)
		follower := c.Others(c.Leader())[0]
		contestants = append(contestants, &contestant{
			c, map[string]*hosts.Host{"follower": follower.Host, "mount": g.Host}, make(map[string][]float64),
		})
	}
	for range b.N {
		for _, where := range []string{"follower", "mount"} {
			for _, of := range contestants {
				out := of.hosts[where].MustRun(b, of.cluster.Program, "bench", "--json", "--only", "cycle,stat", "--duration", "2s", of.cluster.Mount)
				var report figures.Report
				require.NoError(b, json.Unmarshal([]byte(out), &report), out)
				for _, r := range report.Results {
					require.Empty(b, r.Error)
					what := r.Measurement + "-" + where
					of.took[what] = append(of.took[what], r.Median)
				}
			}
		}
	}
	for what, plain := range contestants[0].took {
		without, with := figures.Quantile(plain, 0.5), figures.Quantile(contestants[1].took[what], 0.5)
		b.ReportMetric(without, "us/"+what)
		b.ReportMetric(with, "us/"+what+"-TLS")
		b.ReportMetric(100*(with/without-1), "%-more/"+what)
	}
	b.ReportMetric(0, "ns/op")
}
