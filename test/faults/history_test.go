package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
	"lockfs/test/workload"
)

// The histories that these tests record and check, and what is done meanwhile, follow from a seed, which
// is printed. Only the order in which things happen at once does not.
//
//	LOCKFS_TEST_SEED=N   the seed of the random run, to repeat one; "random" is any
//	LOCKFS_TEST_SOAK=N   N times as many faults (see testcluster.Faults):
//	                     LOCKFS_TEST_SOAK=20 test/run mounts -timeout 60m -run TestHistories
const (
	seedVariable = "LOCKFS_TEST_SEED"
	fixedSeed    = 1
)

const (
	historyTerm     = 2 * time.Second
	clientsPerHost  = 2 // of a history
	callsPerClient  = 50
	historiesAtOnce = 4
)

// TestHistories lets programs on three servers and a host without a voter do what they like with a few
// names while nodes and mounts die, freeze and lose sight of each other. All that they saw has to be
// possible on one file system that does one thing after the other.
func TestHistories(t *testing.T) {
	t.Parallel()
	seed := randomSeed(t)
	// Longer and shorter than what most harms last: many calls that survive, or many unknown outcomes.
	t.Run("fixed seed", func(t *testing.T) { testHistories(t, harms, fixedSeed, 5*time.Second, sometimesLeased) })
	t.Run("random seed", func(t *testing.T) { testHistories(t, harms, seed, 1500*time.Millisecond, neverLeased) })
}

func randomSeed(t testing.TB) uint64 {
	t.Helper()
	text, set := os.LookupEnv(seedVariable)
	if !set || text == "random" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, seedVariable)
	return seed
}

// TestHistoriesWithLeases is TestHistories of servers and mounts that lease whatever can be, on hosts whose clocks run a hundredth fast and slow.
func TestHistoriesWithLeases(t *testing.T) {
	testHistories(t, harms, randomSeed(t), 1500*time.Millisecond, alwaysLeased)
}

// TestHistoriesWhileLinksAreCut is TestHistories where the only harm is that single pairs of hosts do not reach each other.
func TestHistoriesWhileLinksAreCut(t *testing.T) {
	testHistories(t, linkHarms, randomSeed(t), 5*time.Second, alwaysLeased)
}

// leasing is what servers lease.
type leasing int

const (
	neverLeased     leasing = iota // --leases=off
	sometimesLeased                // what they do: what was asked for twice and has not just changed
	alwaysLeased                   // all that can be
)

func testHistories(t *testing.T, harms []harm, seed uint64, opTimeout time.Duration, leases leasing, environment ...string) {
	t.Parallel()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	timeout := "--op-timeout=" + opTimeout.String()
	flags := []string{"--session-term=" + historyTerm.String(), timeout}
	if leases == neverLeased {
		flags = append(flags, "--leases=off")
	}
	c := testcluster.NewCluster(t, flags...)
	g := c.AddGuest(t, "m", timeout)
	var ofNodes []string
	if leases == alwaysLeased {
		c.Program, ofNodes = testcluster.FaultyProgram(t), []string{"LOCKFS_TEST_EAGER_LEASES=1"}
	}
	for _, rate := range []float64{1.01, 0.99, 1} {
		n := c.Add(t)
		n.Environment = ofNodes
		if leases == alwaysLeased {
			n.Environment = append(slices.Clone(ofNodes), clockRate(rate))
		}
		n.Start(t)
	}
	g.Environment = slices.Concat(ofNodes, environment)
	if leases == alwaysLeased {
		g.Environment = append(g.Environment, clockRate([]float64{1.01, 0.99}[random.IntN(2)]))
	}
	g.Start(t)
	s := &schedule{c: c, guest: g, term: historyTerm, random: random, harms: harms}
	b := newBustle(c, s.hosts(), seed)
	b.Calls = callsPerClient
	c.Nodes[0].SetRule(t, "*", "--stale-after", "10000h") // all names are locks: the model knows nothing of data
	stop := b.Start(t)
	s.run(t, testcluster.Faults(len(harms)))
	stop()
	c.RequireSameState(t)
	began := time.Now()
	checked, undecided := b.Check(t)
	require.NoError(t, undecided)
	t.Logf("%d histories, checked in %.1fs: %v", b.Dirs(), time.Since(began).Seconds(), checked.Tally())
	assert.Greater(t, len(checked.Calls), 100*b.Dirs(), "calls")
}

// clockRate has the clocks of a daemon that nobody sets go at a rate from now on.
func clockRate(rate float64) string {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return fmt.Sprintf("LOCKFS_TEST_CLOCK_RATE=%g@%d", rate, now.Nano())
}

// newBustle is histories of which the caller says what is done in them.
func newBustle(c *testcluster.Cluster, on []*hosts.Host, seed uint64) *workload.Bustle {
	return &workload.Bustle{Cluster: c, Hosts: on, Seed: seed, AtOnce: historiesAtOnce, Clients: clientsPerHost}
}
