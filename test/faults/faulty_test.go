package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/differential"
	"lockfs/test/history"
	"lockfs/test/hosts"
	"lockfs/test/testcluster"
	"lockfs/test/workload"
)

// A trial is a situation in which a certain mistake shows.
type trial struct {
	mistake string // of test/mutants/faults
	// run answers what a checker says: nil if nothing is wrong.
	run func(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error
}

var trials = []trial{
	{"no-dedup", trialLostReply},
	{"ignore-cancel", trialCancel},
	{"apply-clock", trialSameState},
	{"unverified-reads", trialStaleRead},
	{"late-keepalives", trialLateKeepalive},
	{"stale-cache", trialCache},
	{"ignore-looks", trialLooks},
	{"look-at-data", trialLockstep(differential.Exclusive)},
	{"any-number", trialLockstep(differential.Plain)},
	{"guard-locked", trialLocks},
}

// TestMistakesAreSeen makes each of some mistakes that lockfs could have, one at a time, and requires that
// it is seen by what the other tests judge by. The same situations without a mistake are fine.
func TestMistakesAreSeen(t *testing.T) {
	t.Parallel()
	requireSeen(t, trials)
}

// requireSeen requires that each mistake is seen in its trial, in a cluster of servers with some flags, and nothing in any where none is
// made.
func requireSeen(t *testing.T, trials []trial, flags ...string) {
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		c, g := startFaulty(t, "none", flags...)
		for _, trial := range trials {
			require.NoError(t, trial.run(t, c, g, makeTrialDir(t, c, trial)), "without the mistake %s", trial.mistake)
		}
	})
	for _, trial := range trials {
		t.Run(trial.mistake, func(t *testing.T) {
			t.Parallel()
			c, g := startFaulty(t, trial.mistake, flags...)
			var err error
			for attempt := 0; err == nil && attempt < 3; attempt++ { // what shows it may not have been under way just then
				err = trial.run(t, c, g, makeTrialDir(t, c, trial))
			}
			require.Error(t, err, "the mistake is not seen")
			require.NotErrorIs(t, err, history.ErrUndecided)
			t.Logf("seen: %.2000v", err)
		})
	}
}

const trialTerm = 6 * time.Second

func startFaulty(t testing.TB, mistake string, flags ...string) (*testcluster.Cluster, *testcluster.Guest) {
	t.Helper()
	c := testcluster.NewCluster(t, append(flags, "--session-term", trialTerm.String())...)
	c.Program = testcluster.FaultyProgram(t)
	environment := "LOCKFS_TEST_FAULT=" + mistake
	for range 3 {
		n := c.Add(t)
		n.Environment = []string{environment}
		n.Start(t)
	}
	g := c.AddGuest(t, "m", "--op-timeout", "10s")
	g.Environment = []string{environment}
	g.Start(t)
	return c, g
}

// cutFromServers has a guest hear nothing of any server.
func cutFromServers(c *testcluster.Cluster, g *testcluster.Guest) {
	for _, n := range c.Nodes {
		g.Host.CutFrom(n.Host)
	}
}

func makeTrialDir(t testing.TB, c *testcluster.Cluster, trial trial) string {
	t.Helper()
	return strings.TrimSpace(c.Leader().Host.MustRun(t, "mktemp", "--directory", c.Path(trial.mistake+".XXXXXX")))
}

func verdict(h *history.History) error { return h.Check(workload.CheckTime) }

// attemptTime is more than a daemon waits for the answer of one node, and less than an operation may take.
const attemptTime = 2500 * time.Millisecond

// trialLostReply loses the reply to an append, which is then asked for again.
func trialLostReply(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	leader := c.Leader()
	writer := startScripted(t, c, g.Host, dir, 1)
	writer.do("create log")
	cutFromServers(c, g) // else another server would forward the reply
	writer.tell("append log once")
	hosts.Eventually(t, "the append is done", func() (string, bool) {
		content := leader.Host.MustRun(t, "cat", filepath.Join(dir, "log"))
		return content, content != ""
	})
	// Before the daemon has given that attempt up, the reply would only have been late.
	time.Sleep(attemptTime)
	g.Host.Heal()
	writer.do("read log")
	return verdict(&history.History{Calls: recorded(t, writer)})
}

// trialCancel loses the replies to creations until they are given up.
func trialCancel(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	var makers []*scripted
	for attempt := 0; ; attempt++ {
		leader := c.Leader()
		makers = startMakers(t, g, filepath.Join(dir, fmt.Sprint(attempt)))
		release := holdCommits(t, leader)
		awaitStandstill(t, makers)
		cutFromServers(c, g)
		release()
		for _, maker := range makers {
			if err := maker.worker.Wait(); err != nil {
				require.NotEqual(t, leader, c.Leader(), "it ends as an outcome is unknown: %v", err)
				maker.worker.Kill()
			}
		}
		g.Host.Heal()
		stopped := g.Daemon
		require.NoError(t, stopped.Stop())
		g.Start(t)
		if c.Leader() != leader {
			t.Log("commits were held for too long: another leader was elected")
		} else if strings.Contains(stopped.Log(), "outcome of a call") {
			t.Log("it ended before all was settled")
		} else {
			break
		}
	}
	settled := history.Now()
	all := makers
	for _, maker := range makers {
		looker := startScripted(t, c, g.Host, maker.plan.Dirs[0], len(all))
		looker.do("list")
		all = append(all, looker)
	}
	return verdict(&history.History{Calls: recorded(t, all...), Settled: settled})
}

// startMakers starts clients on a guest that make one directory after the other. Each has a directory of
// its own for that: the kernel lets only one at a time create in a directory.
func startMakers(t testing.TB, g *testcluster.Guest, dir string) []*scripted {
	t.Helper()
	var makers []*scripted
	for i := range 5 {
		own := filepath.Join(dir, fmt.Sprint(i))
		g.Host.MustRun(t, "mkdir", "-p", own)
		maker := startScripted(t, g.Cluster, g.Host, own, i)
		makers = append(makers, maker)
		for n := range 1000 {
			maker.tell(fmt.Sprintf("mkdir %d", n))
		}
	}
	for _, maker := range makers {
		require.NoError(t, maker.worker.WaitOutput("done 10\n"))
	}
	return makers
}

// holdCommits has a leader hear nothing of what its followers store, while it can still answer those whose queries bring the word of
// a voter along, as guests' and other servers' do. The queries of its own mount wait, too.
// After a second it would not be the leader any more.
func holdCommits(t testing.TB, leader *testcluster.Node) (release func()) {
	t.Helper()
	leader.Host.MustRun(t, "nft", `add table inet trial
		add chain inet trial input { type filter hook input priority 0; }
		add rule inet trial input tcp sport 7420 drop`)
	return func() {
		t.Helper()
		leader.Host.MustRun(t, "nft", "delete table inet trial")
	}
}

// awaitStandstill waits until no client gets on any more.
func awaitStandstill(t testing.TB, clients []*scripted) {
	t.Helper()
	before := -1
	hosts.Eventually(t, "nobody gets on", func() (string, bool) {
		now := len(recorded(t, clients...))
		stands := now == before
		before = now
		return fmt.Sprint(now), stands
	})
}

func trialSameState(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	g.Host.MustRun(t, "touch", filepath.Join(dir, "file"))
	var differ error
	hosts.Eventually(t, "all nodes at one state index", func() (string, bool) {
		s, err := c.Nodes[0].Status()
		if err != nil || len(s.Nodes) != len(c.Nodes) {
			return fmt.Sprintf("%+v, error %v", s, err), false
		}
		differ = nil
		for _, n := range s.Nodes {
			if n.StateIndex != s.Nodes[0].StateIndex || n.StateHash == "" {
				return fmt.Sprintf("%+v", s), false
			}
			if n.StateHash != s.Nodes[0].StateHash {
				differ = fmt.Errorf("%s and %s differ at index %d", n.Name, s.Nodes[0].Name, n.StateIndex)
			}
		}
		return "", true
	})
	return differ
}

// trialStaleRead reads on a leader that has been deposed and does not know.
func trialStaleRead(t testing.TB, c *testcluster.Cluster, _ *testcluster.Guest, dir string) error {
	deposed := c.Leader()
	reader := startScripted(t, c, deposed.Host, dir, 1)
	writer := startScripted(t, c, c.Others(deposed)[0].Host, dir, 2)
	reader.do("create lock", "stat lock")
	deposed.Host.Cut()
	writer.do("unlink lock", "create lock")
	reader.tell("stat lock")
	// The wrong answer comes at once, the right one cannot come before it is healed.
	hosts.Eventually(t, "the reader has begun", func() (string, bool) {
		calls := recorded(t, reader)
		return fmt.Sprint(calls), len(calls) == 3
	})
	deposed.Host.Heal()
	reader.wait()
	return verdict(&history.History{Calls: recorded(t, reader, writer)})
}

// trialLateKeepalive makes a mount's keepalive late, but not too late, and sees whether it keeps what it
// has open.
func trialLateKeepalive(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	n := c.Nodes[0]
	before := n.AwaitSession(t, "m", "a keepalive that has just come", func(s []testcluster.Session) bool {
		return len(s) == 1 && s[0].Silent < 0.5
	})
	user := startScripted(t, c, g.Host, dir, 1)
	user.do("create file", "unlink file", "write file before")
	g.Daemon.Freeze()
	n.AwaitSession(t, "m", "silence for more than half the term", func(s []testcluster.Session) bool {
		return len(s) == 1 && s[0].Silent > 0.6*trialTerm.Seconds()
	})
	g.Daemon.Thaw()
	after := n.AwaitSession(t, "m", "the keepalive is counted, or the session is another", func(s []testcluster.Session) bool {
		return len(s) == 1 && (s[0].ID != before[0].ID || s[0].Silent < 0.5)
	})
	user.do("write file afterwards", "read file")
	if after[0].ID != before[0].ID {
		return errors.New("the session ended although its keepalive came in time")
	}
	return verdict(&history.History{Calls: recorded(t, user), SessionsLast: true})
}

// trialCache looks twice on one host, and replaces what it saw on another in between.
func trialCache(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	reader := startScripted(t, c, g.Host, dir, 1)
	writer := startScripted(t, c, c.Nodes[0].Host, dir, 2)
	writer.do("create lock")
	reader.do("stat lock")
	writer.do("unlink lock", "create lock")
	reader.do("stat lock")
	return verdict(&history.History{Calls: recorded(t, reader, writer)})
}

// trialLooks has one look at a lock that another one replaces, and then remove what is there.
func trialLooks(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	c.Nodes[0].SetRule(t, filepath.Base(dir)+"/*", "--stale-after", "10000h")
	breaker := startScripted(t, c, g.Host, dir, 1)
	holder := startScripted(t, c, c.Nodes[0].Host, dir, 2)
	holder.do("create lock", "write lock before")
	breaker.do("look lock", "read lock")
	holder.do("unlink lock", "create lock", "write lock afterwards")
	breaker.do("unlink lock", "stat lock")
	return verdict(&history.History{Calls: recorded(t, breaker, holder)})
}

// trialLocks is one of the histories of TestLockHistories, in which no node fails. With the mistake two have a lock
// at a time, mostly, and others cannot write to what they have locked.
func trialLocks(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	b := newBustle(c, append(c.Hosts(), g.Host), fixedSeed)
	b.Calls, b.Files = lockCallsPerClient, []string{"x", "y"}
	require.NoError(t, b.Record(filepath.Base(dir)+"-history", fixedSeed))
	return b.LockHistory(t, attemptTime, 0).Check(workload.CheckTime)
}

// trialLockstep is some of the sequences of TestLockstep.
func trialLockstep(mode differential.Mode) func(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	const sequences = 3
	return func(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
		observer := c.Nodes[0].Host
		disk := testcluster.LocalDir(t, c, filepath.Base(dir)+".disk", observer, `mount -t tmpfs local "$1"`)
		m := startMatch(t, mode, observer, dir, disk, c.Nodes[1].Host, c.Nodes[2].Host, g.Host)
		for n := range uint64(sequences) {
			d, err := m.Play(differential.Random(rand.New(rand.NewPCG(fixedSeed, n)), mode, len(m.Mount), lockstepSteps))
			require.NoError(t, err)
			if d != nil {
				return fmt.Errorf("sequence %d, step %d: %w", n, d.Step, errors.New(d.String()))
			}
		}
		return nil
	}
}
