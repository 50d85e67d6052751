package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/history"
	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// leaseTrials are of mounts that answer from leases and are cut off, frozen, or hear of nothing.
var leaseTrials = []trial{
	{"answer-before-revocation", trialAnswer},
	{"show-before-revocation", trialShow},
	{"no-lease-wait", trialSuccessor},
	{"forget-words", trialSuccessor},
	{"lease-from-answer", trialLateAnswer},
}

// rareTrials show a mistake by luck, and take long.
var rareTrials = []trial{{"keep-over-ticks", trialTick}, {"keep-absent", trialAbsent}}

// TestLeaseMistakesAreSeen is TestMistakesAreSeen of leases.
func TestLeaseMistakesAreSeen(t *testing.T) {
	t.Parallel()
	trials := leaseTrials
	if testcluster.Long() {
		trials = append(trials, rareTrials...)
	}
	requireSeen(t, trials)
}

// holdLease has the guest look until it holds what it sees, which tells of so many inodes: the directory that it is in is one. Nobody else
// holds anything.
func holdLease(t testing.TB, c *testcluster.Cluster, reader *scripted, call string, inodes int) {
	t.Helper()
	c.AwaitNoLeases(t)
	c.AwaitLeases(t, inodes, func() { reader.do(call, call, call) })
	reader.do(call, call, call)
}

// trialAnswer cuts a mount off that has a lease on what another one changes.
func trialAnswer(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	reader := startScripted(t, c, g.Host, dir, 1)
	writer := startScripted(t, c, c.Leader().Host, dir, 2)
	writer.do("create lock")
	holdLease(t, c, reader, "stat lock", 2)
	g.Host.Cut()
	writer.do("unlink lock")
	reader.tell("stat lock")
	awaitBegun(t, reader)
	g.Host.Heal()
	reader.wait()
	return verdict(&history.History{Calls: recorded(t, reader, writer)})
}

// awaitBegun waits until a client has had time to be answered by its mount alone, if that has an answer.
func awaitBegun(t testing.TB, client *scripted) {
	t.Helper()
	before := -1
	hosts.Eventually(t, "the client stands still", func() (string, bool) {
		now := len(recorded(t, client))
		stands := now == before
		before = now
		return "", stands
	})
}

// trialShow has a third one look at what is changed while the change waits for a mount that is cut off.
func trialShow(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	reader := startScripted(t, c, g.Host, dir, 1)
	writer := startScripted(t, c, c.Leader().Host, dir, 2)
	other := startScripted(t, c, c.Others(c.Leader())[0].Host, dir, 3)
	writer.do("create lock")
	other.do("stat lock")
	holdLease(t, c, reader, "stat lock", 2)
	g.Host.Cut()
	writer.tell("unlink lock")
	for range 100 {
		other.tell("stat lock")
		for range 10 { // it answers faster, until its lease is over
			reader.tell("stat lock")
		}
	}
	other.wait()
	writer.wait()
	awaitBegun(t, reader)
	g.Host.Heal()
	reader.wait()
	return verdict(&history.History{Calls: recorded(t, reader, writer, other)})
}

// trialSuccessor has the leadership given to another node at once, which the program does not let anybody ask for. So it is a test of
// package cluster.
func trialSuccessor(t testing.TB, _ *testcluster.Cluster, g *testcluster.Guest, _ string) error {
	cmd := exec.Command("go", "test", testcluster.FaultyFlag(t), "-count=1", "-run", "^TestANewLeaderWaitsForLeases$", "./cluster")
	cmd.Dir, cmd.Env = testcluster.SourcePath(t, "."), append(os.Environ(), g.Environment...)
	if output, err := cmd.CombinedOutput(); err != nil {
		require.Contains(t, string(output), "what others were told")
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

const (
	// answerTime is more than a leader takes to answer the request to extend a lease.
	answerTime = 500 * time.Millisecond
	// readTime is more than a mount takes to read an answer that has come, and less than a lease.
	readTime = 100 * time.Millisecond
)

// trialLateAnswer freezes a mount while an extension of its lease is on its way, and cuts it off before it reads that. It holds that a
// name is free: of removals it would hear otherwise.
func trialLateAnswer(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	reader := startScripted(t, c, g.Host, dir, 1)
	writer := startScripted(t, c, c.Leader().Host, dir, 2)
	holdLease(t, c, reader, "stat lock", 1)
	g.Daemon.Freeze()
	time.Sleep(answerTime)
	writer.do("create lock")
	g.Host.Cut()
	g.Daemon.Thaw()
	time.Sleep(readTime)
	reader.tell("stat lock")
	awaitBegun(t, reader)
	g.Host.Heal()
	reader.wait()
	return verdict(&history.History{Calls: recorded(t, reader, writer)})
}

var errStillListed = errors.New("a mount lists what others know to be removed")

// trialTick has lockfs remove locks whose time is over, each of them while a mount that was just cut off has a lease on the directory: else
// that would hear of removals. It takes some, each cut off a little earlier, as nobody sees when the lease begins that is the last one, or
// how long it takes to cut.
func trialTick(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	const staleAfter = 3 * time.Second
	n := c.Leader()
	n.SetRule(t, filepath.Base(dir)+"/*", "--stale-after", staleAfter.String(), "--on-stale", "remove", "--any-file")
	reader := startScripted(t, c, g.Host, dir, 1)
	for round := range 10 {
		before := time.Duration(round+1) * 40 * time.Millisecond
		path := filepath.Join(dir, "lock")
		n.Host.MustRun(t, "touch", path)
		made := time.Now()
		watcher := n.Host.Start("sh", "-c", `while [ -e "$1" ]; do sleep 0.01; done; echo gone`, "sh", path)
		c.AwaitLeases(t, 1, func() { reader.do("list", "list", "list") })
		time.Sleep(time.Until(made.Add(staleAfter - before)))
		reader.do("list")
		g.Host.Cut()
		require.NoError(t, watcher.WaitOutput("gone\n"))
		reader.tell("list")
		awaitBegun(t, reader)
		g.Host.Heal()
		reader.wait()
		calls := recorded(t, reader)
		if _, listed := calls[len(calls)-1].Got.Entries["lock"]; listed {
			return errStillListed
		}
	}
	return nil
}

// trialAbsent has a mount hold that there is no name when another one makes it. A few names are tried: on a busy machine, a lease may be
// over before its mount gets to have it extended.
func trialAbsent(t testing.TB, c *testcluster.Cluster, g *testcluster.Guest, dir string) error {
	reader := startScripted(t, c, g.Host, dir, 1)
	writer := startScripted(t, c, c.Leader().Host, dir, 2)
	for round := range 3 {
		name := fmt.Sprint("lock", round)
		holdLease(t, c, reader, "stat "+name, 1)
		writer.do("create " + name)
		reader.do("stat " + name)
	}
	return verdict(&history.History{Calls: recorded(t, reader, writer)})
}

// TestALeaderKilledInTheMidstOfARevocation has a change wait for a mount that is cut off, and kills the leader meanwhile.
func TestALeaderKilledInTheMidstOfARevocation(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	g := c.AddGuest(t, "m")
	g.Start(t)
	dir := c.Path("dir")
	leader := c.Leader()
	leader.Host.MustRun(t, "mkdir", dir)
	reader := startScripted(t, c, g.Host, dir, 1)
	writer := startScripted(t, c, c.Others(leader)[0].Host, dir, 2)
	writer.do("create lock")
	holdLease(t, c, reader, "stat lock", 2)
	g.Host.Cut()
	writer.tell("unlink lock")
	leader.Kill()
	writer.wait()
	reader.tell("stat lock")
	awaitBegun(t, reader)
	g.Host.Heal()
	reader.wait()
	require.NoError(t, verdict(&history.History{Calls: recorded(t, reader, writer)}))
}
