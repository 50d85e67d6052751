package speed

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/hosts"
	"lockfs/test/load"
	"lockfs/test/testcluster"
)

// BenchmarkCrowd measures what many mounts cost the leader of three servers. They are simulated: clients of the API as mounts have them,
// with a session, keepalives and a lease each, 500 in a process on a host of its own. All look at one held lock, at intervals. Leader's processor is of
// one core; memory is what the leader has resident; then the leader is killed, and s-failover is until each has been answered by another, and s-removal
// from when the lock is removed, which all have leases on, until that is acknowledged:
//
//	go test ./test/speed -run '^$' -bench Crowd -benchtime 1x -timeout 1h
func BenchmarkCrowd(b *testing.B) {
	for _, size := range []struct {
		mounts int
		every  time.Duration
	}{{1000, 100 * time.Millisecond}, {largeCrowd(b), 400 * time.Millisecond}} {
		b.Run(fmt.Sprint(size.mounts), func(b *testing.B) {
			c := testcluster.StartInsecureCluster(b, 3)
			leader := c.Leader()
			leader.Host.MustRun(b, "sh", "-c", "set -C; echo held > "+c.Path("lock"))
			var groups []crowdGroup
			for first := 0; first < size.mounts; first += crowdGroupSize {
				groups = append(groups, startCrowd(b, c, &load.Plan{
					Servers: strings.Split(c.Servers(), ","), First: first, Mounts: min(crowdGroupSize, size.mounts-first), Every: size.every, Name: "lock",
				}))
			}
			awaitAnswers(b, groups)
			at := slices.Index(c.Nodes, leader)
			for range b.N {
				before := usageOf(b, c)[at]
				asked := answersOf(groups)
				time.Sleep(crowdTerm)
				after := usageOf(b, c)[at]
				b.ReportMetric(100*(after.cpu-before.cpu)/crowdTerm.Seconds(), "%cpu-leader")
				b.ReportMetric(after.memory, "MiB-leader")
				b.ReportMetric(float64(answersOf(groups)-asked)/crowdTerm.Seconds(), "answers/s")
				began := time.Now()
				leader.Host.MustRun(b, "rm", c.Path("lock"))
				b.ReportMetric(time.Since(began).Seconds(), "s-removal")
				leader.Host.MustRun(b, "sh", "-c", "set -C; echo held > "+c.Path("lock"))
			}
			began := time.Now()
			leader.Kill()
			awaitAnswers(b, groups)
			b.ReportMetric(time.Since(began).Seconds(), "s-failover")
			b.ReportMetric(0, "ns/op")
			for _, g := range groups {
				g.process.Kill()
			}
		})
	}
}

// BenchmarkCrowdFloor measures what it costs a process to read a frame from each of so many clients and to answer it as often as leases are
// renewed, and to do nothing else; in percent of one core, as %cpu-leader of BenchmarkCrowd is:
//
//	go test ./test/speed -run '^$' -bench CrowdFloor -benchtime 1x -timeout 1h
func BenchmarkCrowdFloor(b *testing.B) {
	for _, mounts := range []int{1000, largeCrowd(b)} {
		b.Run(fmt.Sprint(mounts), func(b *testing.B) {
			net := hosts.New(b)
			self, err := os.Executable()
			require.NoError(b, err)
			at := net.Host("server")
			floor := load.Floor{Address: at.Addr() + ":7000", Every: 550 * time.Millisecond, Tick: 50 * time.Millisecond}
			server := at.Start(self, floor.Args()...)
			require.NoError(b, server.WaitOutput("listening"))
			for first := 0; first < mounts; first += crowdGroupSize {
				floor.Clients = min(crowdGroupSize, mounts-first)
				clients := net.Host(fmt.Sprintf("crowd%d", first)).Start(self, floor.Args()...)
				require.NoError(b, clients.WaitOutput("answered"))
			}
			for range b.N {
				before := usageOfProcess(b, server)
				time.Sleep(crowdTerm)
				b.ReportMetric(100*(usageOfProcess(b, server).cpu-before.cpu)/crowdTerm.Seconds(), "%cpu")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

const (
	crowdGroupSize = 500
	crowdTerm      = 20 * time.Second
)

// largeCrowd is as many mounts as servers have sessions for besides their own, or what this machine can simulate: a core does the work of some
// 1,500 beside the servers (with more, answers come later than leases last, and it never comes to rest), and a server has two connections with
// each that makes calls, for which it takes three quarters of the files that a process may have.
func largeCrowd(b *testing.B) int {
	b.Helper()
	var files unix.Rlimit
	require.NoError(b, unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
	return min(9990, 1500*runtime.NumCPU(), int(files.Max)*3/8)
}

// crowdGroup is a process of a crowd.
type crowdGroup struct{ process *hosts.Process }

func startCrowd(b *testing.B, c *testcluster.Cluster, plan *load.Plan) crowdGroup {
	b.Helper()
	self, err := os.Executable()
	require.NoError(b, err)
	return crowdGroup{c.AddClient(b, fmt.Sprintf("crowd%d", plan.First)).Start(self, plan.Args()...)}
}

// said is the last line of a process.
func (g crowdGroup) said() (since time.Time, answers int64) {
	lines := strings.Split(strings.TrimSpace(g.process.Stdout()), "\n")
	var ns int64
	_, _ = fmt.Sscan(lines[len(lines)-1], &ns, &answers)
	return time.Unix(0, ns), answers
}

// awaitAnswers waits until each mount has been answered what it asks from now on.
func awaitAnswers(b *testing.B, groups []crowdGroup) {
	b.Helper()
	began := time.Now()
	for _, g := range groups {
		for since, _ := g.said(); since.Before(began); since, _ = g.said() {
			select {
			case <-g.process.Ended():
				b.Fatal(g.process.Log())
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

func answersOf(groups []crowdGroup) (all int64) {
	for _, g := range groups {
		_, answers := g.said()
		all += answers
	}
	return all
}
