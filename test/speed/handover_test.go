package speed

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

// BenchmarkHandover measures how long it takes from the beginning of a release of a lock until another host
// has it that waits for it, and how long it takes to lock and unlock without anybody else, for flock(2) on
// lockfs and for the mutex of etcd's own Go client. Both clusters have three members, on three hosts that
// share a disk and a machine, and write to disk what they promise; each client asks the member on its host.
// One of the two that take turns is the leader's host:
//
//	go test ./test/speed -run '^$' -bench Handover -benchtime 1x -timeout 20m
func BenchmarkHandover(b *testing.B) {
	const parts = 3 // of each, in turn, for a machine whose disk has moods
	helper := buildBenchHelper(b)
	services := []struct {
		name  string
		start func(testing.TB, string) lockService
		times lockTimes
	}{{name: "lockfs", start: startLockfs}, {name: "etcd", start: startEtcd}}
	for part := range parts {
		for i := range services {
			s := &services[i]
			b.Run(fmt.Sprint(s.name, "/", part), func(b *testing.B) {
				s.times.measure(b, s.start(b, helper))
				b.ReportMetric(0, "ns/op")
			})
		}
	}
	for _, s := range services {
		b.Run(s.name, func(b *testing.B) { s.times.report(b) })
	}
	b.Run("ratio", func(b *testing.B) {
		for i, hold := range holds {
			lockfs, etcd := services[0].times.handover[i], services[1].times.handover[i]
			b.ReportMetric(stats.Quantile(etcd, 0.5)/stats.Quantile(lockfs, 0.5), fmt.Sprintf("etcd/lockfs-after-%v", hold))
		}
		b.ReportMetric(0, "ns/op")
	})
}

// lockService is a lock on two hosts, the first of which has the leader.
type lockService struct {
	helper string
	hosts  [2]*hosts.Host
	args   [2][]string // of the helper, without the rounds
}

func buildBenchHelper(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "etcd")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, ".")
	cmd.Dir = testcluster.SourcePath(b, "test/bench/etcd")
	output, err := cmd.CombinedOutput()
	require.NoError(b, err, "%s", output)
	return path
}

func startLockfs(t testing.TB, helper string) lockService {
	t.Helper()
	c := testcluster.StartCluster(t, 3)
	leader := c.Leader()
	args := []string{"flock", c.Path("lock")}
	return lockService{helper, [2]*hosts.Host{leader.Host, c.Others(leader)[0].Host}, [2][]string{args, args}}
}

func startEtcd(t testing.TB, helper string) lockService {
	t.Helper()
	net := hosts.New(t)
	names := []string{"a", "b", "c"}
	var peers []string
	for _, name := range names {
		peers = append(peers, fmt.Sprintf("%s=http://%s:2380", name, net.Host(name).Addr()))
	}
	var members []*hosts.Process
	for _, name := range names {
		h := net.Host(name)
		client, peer := fmt.Sprintf("http://%s:2379", h.Addr()), fmt.Sprintf("http://%s:2380", h.Addr())
		members = append(members, h.Start(helper, "server", "--name", name, "--data-dir", filepath.Join(net.Dir(), name),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-state", "new"))
	}
	service := lockService{helper: helper}
	for _, member := range members {
		require.NoError(t, member.WaitOutput("ready to serve client requests"))
		args := []string{"mutex", "http://" + member.Host().Addr() + ":2379"}
		if strings.Contains(member.Log(), "became leader") {
			service.hosts[0], service.args[0] = member.Host(), args
		} else {
			service.hosts[1], service.args[1] = member.Host(), args
		}
	}
	require.NotNil(t, service.hosts[0], "a leader")
	return service
}

func (s lockService) start(rounds int, hold time.Duration, i int) *hosts.Process {
	return s.hosts[i].Start("env", slices.Concat([]string{"HOLD=" + hold.String(), s.helper}, s.args[i], []string{fmt.Sprint(rounds)})...)
}

// lockTimes are in microseconds.
type lockTimes struct {
	handover     [len(holds)][]float64
	lock, unlock [2][]float64 // alone: on the host of the leader, and on another
}

// holds is for how long each has the lock, and so the other one waits. etcd looks only every 100 ms for what a
// watch that is new has missed, and a client that waits is one.
var holds = [...]time.Duration{250 * time.Millisecond, 20 * time.Millisecond}

func (r *lockTimes) report(b *testing.B) {
	b.Helper()
	for i, hold := range holds {
		for _, q := range []float64{0.5, 0.9} {
			b.ReportMetric(stats.Quantile(r.handover[i], q), fmt.Sprintf("us-handover-after-%v-%.0f%%", hold, 100*q))
		}
	}
	for i, where := range []string{"leader", "follower"} {
		b.ReportMetric(stats.Quantile(r.lock[i], 0.5), "us-lock-"+where)
		b.ReportMetric(stats.Quantile(r.unlock[i], 0.5), "us-unlock-"+where)
	}
	b.ReportMetric(0, "ns/op")
}

func (r *lockTimes) measure(b *testing.B, s lockService) {
	b.Helper()
	const rounds, warmUp, roundsAlone = 40, 5, 200
	for i, hold := range holds {
		both := [2]*hosts.Process{s.start(rounds, hold, 0), s.start(rounds, hold, 1)}
		had := [2][]lockRound{lockRounds(b, both[0])[warmUp:], lockRounds(b, both[1])[warmUp:]}
		r.handover[i] = append(r.handover[i], handovers(had[0], had[1])...)
		r.handover[i] = append(r.handover[i], handovers(had[1], had[0])...)
	}
	for i := range s.hosts {
		for _, round := range lockRounds(b, s.start(roundsAlone, 0, i))[warmUp:] {
			r.lock[i] = append(r.lock[i], stats.Micros(round.had-round.asked))
			r.unlock[i] = append(r.unlock[i], stats.Micros(round.released-round.releasing))
		}
	}
}

// handovers is the times from one's release to the other's lock, which that one asked for before.
func handovers(from, to []lockRound) (times []float64) {
	for _, release := range from {
		next := slices.IndexFunc(to, func(r lockRound) bool { return r.had > release.releasing })
		if next >= 0 && to[next].asked < release.releasing {
			times = append(times, stats.Micros(to[next].had-release.releasing))
		}
	}
	return times
}

// lockRound is what a client saw, in time since some moment.
type lockRound struct{ asked, had, releasing, released time.Duration }

func lockRounds(b *testing.B, p *hosts.Process) (rounds []lockRound) {
	b.Helper()
	require.NoError(b, p.Wait())
	for line := range strings.Lines(strings.TrimPrefix(p.Stdout(), "ready\n")) {
		var round lockRound
		_, err := fmt.Sscan(line, &round.asked, &round.had, &round.releasing, &round.released)
		require.NoError(b, err)
		rounds = append(rounds, round)
	}
	return rounds
}
