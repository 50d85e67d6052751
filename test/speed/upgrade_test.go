package speed

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

// BenchmarkUpgrade measures for how long a server that is upgraded does not serve its mount, as its log says, and the longest that a
// write takes meanwhile through a descriptor whose file is locked: of the only server, of the leader of two, of a follower of three, and
// of their leader; and the same of the mount of a host without a server. Eleven times each:
//
//	go test ./test/speed -run '^$' -bench Upgrade -benchtime 1x
func BenchmarkUpgrade(b *testing.B) {
	for _, kind := range []string{"only", "leader-of-two", "follower", "leader", "client"} {
		b.Run(kind, func(b *testing.B) {
			servers := map[string]int{"only": 1, "leader-of-two": 2}
			c := testcluster.StartCluster(b, cmp.Or(servers[kind], 3))
			client := c.AddClient(b, "client")
			mount := c.MountOn(b, client, c.Servers())
			var paused, longest []float64
			for range b.N {
				for range 11 {
					n := c.Leader()
					if kind == "follower" {
						n = c.Others(n)[0]
					}
					host, process := n.Host, n.Server
					isBack := func() bool {
						status, err := n.Status()
						return err == nil && slices.ContainsFunc(status.Nodes, func(s testcluster.NodeStatus) bool { return s.Name == n.Name && s.Mount != "" })
					}
					if kind == "client" {
						host, process, isBack = client, mount, func() bool { return true }
					}
					pause, write := upgrade(b, c.Path(n.Name), host, process, isBack)
					paused, longest = append(paused, pause), append(longest, write)
				}
			}
			b.Logf("pauses in ms: %.0f; longest writes: %.0f", paused, longest)
			b.ReportMetric(stats.Quantile(paused, 0.5), "ms-pause-median")
			b.ReportMetric(stats.Quantile(longest, 0.5), "ms-write-median")
			b.ReportMetric(slices.Max(longest), "ms-write-worst")
			b.ReportMetric(0, "ns/op")
		})
	}
}

var wentOn = regexp.MustCompile(`went on with the mount.* pause=(\S+)`)

// upgrade has a process execute its program anew while another program writes to a file of its mount, and answers the pause of the mount and
// the longest write, in milliseconds.
func upgrade(b *testing.B, file string, host *hosts.Host, process *hosts.Process, isBack func() bool) (pause, write float64) {
	b.Helper()
	const writing = `
import fcntl, os, signal, sys, time
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
over, longest = [], 0
signal.signal(signal.SIGTERM, lambda *_: over.append(True))
print("writing", flush=True)
while not over:
    began = time.monotonic()
    os.pwrite(fd, b"held", 0)
    longest = max(longest, time.monotonic() - began)
    time.sleep(0.005)
print(longest * 1000)
`
	writer := host.Start("python3", "-c", writing, file)
	require.NoError(b, writer.WaitOutput("writing\n"))
	before := len(wentOn.FindAllString(process.Log(), -1))
	process.Signal(syscall.SIGHUP)
	hosts.Eventually(b, "it goes on", func() (string, bool) {
		return process.Log(), isBack() && len(wentOn.FindAllString(process.Log(), -1)) > before
	})
	writer.Signal(syscall.SIGTERM)
	require.NoError(b, writer.Wait())
	_, err := fmt.Sscan(strings.TrimPrefix(writer.Stdout(), "writing\n"), &write)
	require.NoError(b, err)
	took, err := time.ParseDuration(wentOn.FindAllStringSubmatch(process.Log(), -1)[before][1])
	require.NoError(b, err)
	return float64(took.Microseconds()) / 1000, write
}
