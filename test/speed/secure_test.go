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
//	go test ./test/speed -run '^$' -bench TLS -benchtime 20x
//
// Two clusters of each kind are there all the time and take short turns, so that what else the machine does is shared by all. Each figure is the
// median of the rounds of both; %-more is by how much that with certificates is larger, and %-apart by how much the two without differ
// from each other, which is what chance does.
func BenchmarkTLS(b *testing.B) {
	type contestant struct {
		cluster *suite.Cluster
		hosts   map[string]*hosts.Host
		took    map[string][]float64
	}
	var contestants []*contestant
	for _, start := range []func(testing.TB, int, ...string) *suite.Cluster{
		suite.StartInsecureCluster, suite.StartSecureCluster, suite.StartSecureCluster, suite.StartInsecureCluster,
	} {
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
				out := of.hosts[where].MustRun(b, of.cluster.Program, "bench", "--json", "--only", "cycle,stat", "--duration", "300ms", of.cluster.Mount)
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
	median := func(what string, of ...*contestant) float64 {
		var all []float64
		for _, c := range of {
			all = append(all, c.took[what]...)
		}
		return figures.Quantile(all, 0.5)
	}
	for what := range contestants[0].took {
		without, with := median(what, contestants[0], contestants[3]), median(what, contestants[1], contestants[2])
		b.ReportMetric(without, "us/"+what)
		b.ReportMetric(with, "us/"+what+"-TLS")
		b.ReportMetric(100*(with/without-1), "%-more/"+what)
		b.ReportMetric(100*(median(what, contestants[3])/median(what, contestants[0])-1), "%-apart/"+what)
	}
	b.ReportMetric(0, "ns/op")
}
