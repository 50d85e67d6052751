package speed

import (
	"encoding/json"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

var tlsRounds = flag.Int("tls.rounds", 2, "pairs of clusters that BenchmarkTLS compares")

// BenchmarkTLS compares the cycle of a lock and a stat with certificates and without, on a follower of three servers and on a mount, where both
// go over the network:
//
//	go test ./test/speed -run '^$' -bench TLS -benchtime 1x -tls.rounds 15 -timeout 1h
//
// Two clusters of the same kind differ by up to a tenth for as long as they live. So each round makes new ones, one of each kind, which take
// turns. A figure is the median of the rounds; %-more is by how much a round's median with certificates is larger than
// that without: the median of all rounds, and within which half of them are.
func BenchmarkTLS(b *testing.B) {
	without, with, more := make(map[string][]float64), make(map[string][]float64), make(map[string][]float64)
	for round := range *tlsRounds {
		b.Run(fmt.Sprint("round-", round), func(b *testing.B) {
			plain, secure := newContestant(b, testcluster.StartInsecureCluster), newContestant(b, testcluster.StartSecureCluster)
			turns := []*contestant{plain, secure, secure, plain}
			for turn := range turns {
				turns[(turn+2*round)%len(turns)].measure(b)
			}
			for what := range plain.took {
				p, s := stats.Quantile(plain.took[what], 0.5), stats.Quantile(secure.took[what], 0.5)
				without[what], with[what] = append(without[what], p), append(with[what], s)
				more[what] = append(more[what], 100*(s/p-1))
				b.ReportMetric(100*(s/p-1), "%-more/"+what)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
	b.Run("all", func(b *testing.B) {
		for what := range more {
			b.ReportMetric(stats.Quantile(without[what], 0.5), "us/"+what)
			b.ReportMetric(stats.Quantile(with[what], 0.5), "us/"+what+"-TLS")
			b.ReportMetric(stats.Quantile(more[what], 0.5), "%-more/"+what)
			b.ReportMetric(stats.Quantile(more[what], 0.25), "%-more-from/"+what)
			b.ReportMetric(stats.Quantile(more[what], 0.75), "%-more-to/"+what)
		}
		b.ReportMetric(0, "ns/op")
	})
}

type contestant struct {
	cluster *testcluster.Cluster
	hosts   map[string]*hosts.Host
	took    map[string][]float64 // medians, in microseconds
}

func newContestant(b *testing.B, start func(testing.TB, int, ...string) *testcluster.Cluster) *contestant {
	b.Helper()
	c := start(b, 3)
	g := c.AddGuest(b, "m")
	g.Start(b)
	follower := c.Others(c.Leader())[0]
	return &contestant{c, map[string]*hosts.Host{"follower": follower.Host, "mount": g.Host}, make(map[string][]float64)}
}

func (c *contestant) measure(b *testing.B) {
	b.Helper()
	for _, where := range []string{"follower", "mount"} {
		out := c.hosts[where].MustRun(b, c.cluster.Program, "bench", "--json", "--only", "cycle,stat", "--duration", "1s", c.cluster.Mount)
		var report stats.Report
		require.NoError(b, json.Unmarshal([]byte(out), &report), out)
		for _, r := range report.Results {
			require.Empty(b, r.Error)
			c.took[r.Measurement+"-"+where] = append(c.took[r.Measurement+"-"+where], r.Median)
		}
	}
}
