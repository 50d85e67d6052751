package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/history"
	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// The histories that these tests record and check, and what is done meanwhile, follow from a seed, which
// is printed. Only the order in which things happen at once does not.
//
//	LOCKFS_TEST_SEED=N   the seed of the random run, to repeat one; "random" is any
//	LOCKFS_TEST_SOAK=N   N times as many faults (see suite.Faults):
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
	longestPause    = 100 * time.Millisecond
	checkTime       = 30 * time.Second // for one history, far above what any takes
)

// TestHistories lets programs on three servers and a host without a voter do what they like with a few
// names while nodes and mounts die, freeze and lose sight of each other. All that they saw has to be
// possible on one file system that does one thing after the other.
func TestHistories(t *testing.T) {
	t.Parallel()
	seed := randomSeed(t)
	// Longer and shorter than what most harms last: many calls that survive, or many unknown outcomes.
	t.Run("fixed seed", func(t *testing.T) { testHistories(t, harms, fixedSeed, 5*time.Second) })
	t.Run("random seed", func(t *testing.T) { testHistories(t, harms, seed, 1500*time.Millisecond) })
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

func testHistories(t *testing.T, harms []harm, seed uint64, opTimeout time.Duration) {
	t.Parallel()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	timeout := "--op-timeout=" + opTimeout.String()
	c := suite.StartCluster(t, 3, "--session-term="+historyTerm.String(), timeout)
	g := c.AddGuest(t, "m", timeout)
	g.Start(t)
	s := &schedule{c: c, guest: g, term: historyTerm, random: random, harms: harms}
	b := &bustle{c: c, hosts: s.hosts(), seed: seed, calls: callsPerClient}
	c.Nodes[0].SetRule(t, "*", "--stale-after", "10000h") // all names are locks: the model knows nothing of data
	stop := b.start(t)
	s.run(t, suite.Faults(len(harms)))
	stop()
	c.RequireSameState(t)
	b.check(t)
}

// A bustle is histories that are being recorded, several at a time, each in a directory of its own.
type bustle struct {
	c     *suite.Cluster
	hosts []*hosts.Host
	seed  uint64
	calls int      // of a client in a history
	files []string // that are locked, made in each directory; none: there is anything else to do
	holds int      // of a client in a history, which creates and locks names; 0: there is anything else to do

	mu      sync.Mutex
	dirs    []string
	inodes  []string // of the files, in the order of the directories
	records []string
	looks   int
}

// start begins, and answers how to end: with the histories that have begun.
func (b *bustle) start(t testing.TB) (stop func()) {
	var stopped atomic.Bool
	var playing sync.WaitGroup
	failures := make(chan error, historiesAtOnce)
	for lane := range historiesAtOnce {
		playing.Go(func() {
			for n := 0; !stopped.Load(); n++ {
				if err := b.record(fmt.Sprintf("%d-%d", lane, n), b.seed+uint64(n*historiesAtOnce+lane)); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	return func() {
		t.Helper()
		stopped.Store(true)
		playing.Wait()
		close(failures)
		for err := range failures {
			t.Error(err)
		}
	}
}

// record records one history.
func (b *bustle) record(name string, seed uint64) error {
	dir, err := b.makeDir(name)
	if err != nil {
		return err
	}
	failures := make([]error, len(b.hosts)*clientsPerHost)
	var playing sync.WaitGroup
	for client := range failures {
		host := b.hosts[client/clientsPerHost]
		plan := &history.Plan{
			Host: host.Name(), Record: b.newRecord(fmt.Sprintf("%s-%d.calls", name, client)), Dirs: []string{dir}, Client: client,
			Seed: seed, Calls: b.calls, Pause: int(longestPause.Milliseconds()),
			Files: b.files, Holds: b.holds,
		}
		playing.Go(func() { failures[client] = runPlan(host, plan) })
	}
	playing.Wait()
	for _, failure := range failures {
		if failure != nil {
			return failure
		}
	}
	return nil
}

// makeDir makes a directory, with its files, as exclusively as locks are made, on whichever host can. It has another name with each attempt: one that failed
// may take back what it made.
func (b *bustle) makeDir(name string) (string, error) {
	var err error
	for attempt, end := 0, time.Now().Add(hosts.Patience); time.Now().Before(end); attempt++ { // some fail at once
		dir := b.c.Path(fmt.Sprintf("%s.%d", name, attempt))
		host := b.hosts[attempt%len(b.hosts)]
		const script = `set -C; mkdir "$0" && cd "$0" && for f; do : > "$f" && stat -c %i "$f" || exit; done`
		var inodes string
		if inodes, err = host.Run("sh", append([]string{"-c", script, dir}, b.files...)...); err == nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.dirs = append(b.dirs, dir)
			b.inodes = append(b.inodes, strings.Fields(inodes)...)
			return dir, nil
		}
	}
	return "", fmt.Errorf("no host could make a directory in %v; last: %w", hosts.Patience, err)
}

func (b *bustle) newRecord(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	path := filepath.Join(b.c.Net.Dir(), name)
	b.records = append(b.records, path)
	return path
}

func runPlan(host *hosts.Host, plan *history.Plan) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*hosts.Patience)
	defer cancel()
	_, err = host.RunContext(ctx, self, plan.Args()...)
	if len(plan.Files) > 0 && history.Killed(err) {
		return nil
	}
	return err
}

// check looks at everything from everywhere until nothing is left to be taken back, and checks what was
// seen, then and all the time.
func (b *bustle) check(t testing.TB) {
	t.Helper()
	var checked *history.History
	began := time.Now()
	hosts.Eventually(t, "an order in which everything can have happened", func() (string, bool) {
		settled := history.Now()
		b.look(t)
		calls, err := history.ReadCalls(b.records...)
		require.NoError(t, err)
		checked = &history.History{Calls: calls, Settled: settled}
		require.Empty(t, checked.Interrupted(), "calls that a signal interrupted")
		if err = checked.Check(checkTime); err != nil {
			require.NotErrorIs(t, err, history.ErrUndecided)
			return err.Error(), false
		}
		return "", true
	})
	t.Logf("%d histories, checked in %.1fs: %v", len(b.dirs), time.Since(began).Seconds(), checked.Tally())
	assert.Greater(t, len(checked.Calls), 100*len(b.dirs), "calls")
}

// look has every host look at all there is.
func (b *bustle) look(t testing.TB) {
	t.Helper()
	b.looks++
	for i, host := range b.hosts {
		plan := &history.Plan{
			Host: host.Name(), Dirs: b.dirs, Client: len(b.hosts)*clientsPerHost + i, Final: true,
			Record: b.newRecord(fmt.Sprintf("look-%d-%s.calls", b.looks, host.Name())),
		}
		require.NoError(t, runPlan(host, plan))
	}
}
