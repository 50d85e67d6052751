package kernellocks

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
	"lockfs/test/testcluster"
)

// lockers are clients that wait for a lock on a file.
var lockers = []testcluster.Client{
	{Name: "flock(1)", Command: []string{"dash", "flock.sh"}},
	{Name: "flock", Command: []string{"python3", "locker.py"}},
	{Name: "lockf", Command: []string{"python3", "locker.py"}},
	{Name: "ofd", Command: []string{"python3", "locker.py"}},
}

const lockerRounds = 6

// startLockers starts two workers with a kind of lock on each host.
func startLockers(t testing.TB, kind testcluster.Client, dir, witness string, on []*hosts.Host) *testcluster.Job {
	t.Helper()
	on[0].MustRun(t, "mkdir", "-p", dir)
	return testcluster.StartJob(t, kind, dir, testcluster.NewWitness(t, witness), lockerRounds, slices.Concat(on, on)...)
}

// turn is when a worker asked for the lock, and when it had it.
type turn struct {
	worker       int
	asked, given int64
}

func turnsOf(t testing.TB, j *testcluster.Job) (all []turn) {
	t.Helper()
	for i, name := range j.Names {
		text, err := os.ReadFile(j.Witness.Path("times." + name))
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
	c := testcluster.StartCluster(t, 3, never...)
	g := c.AddGuest(t, "m")
	g.Start(t)
	on := append(c.Hosts(), g.Host)
	for _, kind := range lockers {
		t.Run(kind.Name, func(t *testing.T) {
			j := startLockers(t, kind, c.Path(kind.Name), filepath.Join(c.Net.Dir(), kind.Name), on)
			j.Witness.Stop(t)
			j.Wait(t)
			require.Empty(t, j.Witness.Verdict(t))
			for _, h := range on {
				assert.Empty(t, j.Errors(h), h.Name())
			}
			if kind.Name == "flock(1)" {
				return // it cannot tell when it asked
			}
			// A request is on its way for a while after its worker looked at the clock.
			counts := passed(turnsOf(t, j))
			slices.Sort(counts)
			require.LessOrEqual(t, counts[len(counts)*8/10], 1, "%v", counts)
			require.Less(t, counts[len(counts)-1], 2*len(j.Workers), "%v", counts)
		})
	}
	t.Run("none, on the local disk", func(t *testing.T) {
		j := startLockers(t, testcluster.Client{Name: "none", Command: lockers[1].Command}, filepath.Join(t.TempDir(), "none"), t.TempDir(), on)
		j.Witness.Stop(t)
		j.Wait(t)
		require.NotEmpty(t, j.Witness.Verdict(t))
	})
	c.RequireSameState(t)
}

// TestLockersWhileHostsFail cuts hosts off and kills leaders and daemons, while programs on all hosts take
// turns and are killed themselves.
func TestLockersWhileHostsFail(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3, "--session-term", "2s", "--op-timeout", "2s", "--lock-delay", "500ms")
	g := c.AddGuest(t, "m", "--op-timeout", "2s")
	g.Start(t)
	on := append(c.Hosts(), g.Host)
	var js testcluster.Jobs
	for _, kind := range lockers[1:] {
		js = append(js, startLockers(t, kind, c.Path(kind.Name), filepath.Join(c.Net.Dir(), kind.Name), on))
	}
	for range testcluster.Faults(1) {
		for _, fail := range []func(){
			func() { leader := c.Leader(); leader.Kill(); leader.Start(t) },
			func() { g.Host.Cut(); js.AwaitProgress(t, c.Nodes[0]); g.Host.Heal() },
			func() { g.Kill(); js.AwaitProgress(t, c.Nodes[0]); g.Start(t) },
			func() {
				leader := c.Leader()
				leader.Host.Cut()
				js.AwaitProgress(t, c.Others(leader)[0])
				leader.Host.Heal()
			},
		} {
			fail()
			js.AwaitProgress(t, c.Nodes[0])
		}
	}
	for _, j := range js {
		j.Witness.Stop(t)
	}
	for _, j := range js {
		j.Wait(t)
		assert.Empty(t, j.Witness.Verdict(t), j.Client.Name)
	}
	for _, j := range js {
		for _, h := range on {
			for _, line := range j.Errors(h) {
				assert.Regexp(t, failures, line, "%s on %s", j.Client.Name, h.Name())
			}
		}
	}
	c.RequireSameState(t)
}

// failures is what programs are told on a host that fails, or is cut off.
const failures = "Transport endpoint is not connected|Software caused connection abort|Input/output error|" +
	"Connection timed out|No such file or directory|Read-only file system"
