package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// lockers are clients that wait for a lock on a file.
var lockers = []client{
	{"flock(1)", []string{"dash", "flock.sh"}},
	{"flock", []string{"python3", "locker.py"}},
	{"lockf", []string{"python3", "locker.py"}},
	{"ofd", []string{"python3", "locker.py"}},
}

const lockerRounds = 6

// startLockers starts two workers with a kind of lock on each host.
func startLockers(t testing.TB, kind client, dir, witness string, on []*hosts.Host) *job {
	t.Helper()
	on[0].MustRun(t, "mkdir", "-p", dir)
	return startJob(t, kind, dir, newWitness(t, witness), lockerRounds, slices.Concat(on, on)...)
}

// turn is when a worker asked for the lock, and when it had it.
type turn struct {
	worker       int
	asked, given int64
}

func (j *job) turns(t testing.TB) (all []turn) {
	t.Helper()
	for i, name := range j.names {
		text, err := os.ReadFile(j.witness.path("times." + name))
		require.NoError(t, err)
		for line := range bytes.Lines(text) {
			turn := turn{worker: i}
			_, err := fmt.Sscan(string(line), &turn.asked, &turn.given)
			require.NoError(t, err)
			all = append(all, turn)
		}
	}
	slices.SortFunc(all, func(a, b turn) int { return int(a.given - b.given) })
	return all
}

// passed answers, for each turn, how often others who had asked after it were given the lock before.
func passed(turns []turn) (counts []int) {
	for i, late := range turns {
		count := 0
		for _, early := range turns[:i] {
			if early.asked > late.asked {
				count++
			}
		}
		counts = append(counts, count)
	}
	return counts
}

func TestPassed(t *testing.T) {
	assert.Equal(t, []int{0, 0, 1, 0}, passed([]turn{{0, 10, 20}, {1, 15, 30}, {2, 12, 40}, {0, 31, 50}}))
}

// TestLockers has programs on four hosts take turns, and the same on the local disk, with a lock and without.
func TestLockers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, never...)
	g := c.addGuest(t, "m")
	g.start(t)
	on := append(c.hosts(), g.host)
	for _, kind := range lockers {
		t.Run(kind.name, func(t *testing.T) {
			j := startLockers(t, kind, c.path(kind.name), filepath.Join(c.net.Dir(), kind.name), on)
			j.witness.stop(t)
			j.wait(t)
			require.Empty(t, j.witness.verdict(t))
			for _, h := range on {
				assert.Empty(t, j.errors(h), h.Name())
			}
			if kind.name == "flock(1)" {
				return // it cannot tell when it asked
			}
			// A request is on its way for a while after its worker looked at the clock.
			counts := passed(j.turns(t))
			slices.Sort(counts)
			require.LessOrEqual(t, counts[len(counts)*8/10], 1, "%v", counts)
			require.Less(t, counts[len(counts)-1], 2*len(j.workers), "%v", counts)
		})
	}
	t.Run("none, on the local disk", func(t *testing.T) {
		j := startLockers(t, client{"none", lockers[1].command}, filepath.Join(t.TempDir(), "none"), t.TempDir(), on)
		j.witness.stop(t)
		j.wait(t)
		require.NotEmpty(t, j.witness.verdict(t))
	})
	c.requireSameState(t)
}

// TestLockersWhileHostsFail cuts hosts off and kills leaders and daemons, while programs on all hosts take
// turns and are killed themselves.
func TestLockersWhileHostsFail(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, "--session-term", "2s", "--op-timeout", "2s", "--lock-delay", "500ms")
	g := c.addGuest(t, "m", "--op-timeout", "2s")
	g.start(t)
	on := append(c.hosts(), g.host)
	var js jobs
	for _, kind := range lockers[1:] {
		js = append(js, startLockers(t, kind, c.path(kind.name), filepath.Join(c.net.Dir(), kind.name), on))
	}
	for range faults(1) {
		for _, fail := range []func(){
			func() { leader := c.leader(); leader.kill(); leader.start(t) },
			func() { g.host.Cut(); js.awaitProgress(t, c.nodes[0]); g.host.Heal() },
			func() { g.kill(); js.awaitProgress(t, c.nodes[0]); g.start(t) },
			func() {
				leader := c.leader()
				leader.host.Cut()
				js.awaitProgress(t, c.others(leader)[0])
				leader.host.Heal()
			},
		} {
			fail()
			js.awaitProgress(t, c.nodes[0])
		}
	}
	for _, j := range js {
		j.witness.stop(t)
	}
	for _, j := range js {
		j.wait(t)
		assert.Empty(t, j.witness.verdict(t), j.client.name)
	}
	for _, j := range js {
		for _, h := range on {
			for _, line := range j.errors(h) {
				assert.Regexp(t, failures, line, "%s on %s", j.client.name, h.Name())
			}
		}
	}
	c.requireSameState(t)
}

// failures is what programs are told on a host that fails, or is cut off.
const failures = "Transport endpoint is not connected|Software caused connection abort|Input/output error|" +
	"Connection timed out|No such file or directory|Read-only file system"
