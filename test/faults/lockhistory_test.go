package faults

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/history"
	"lockfs/test/testcluster"
	"lockfs/test/workload"
)

const (
	// longLockDelay is longer than a session goes on without its mount being heard of.
	longLockDelay = 2 * historyTerm
	// lockCallsPerClient let those who are not harmed go on while others are.
	lockCallsPerClient = 70
	// harmsToLocks are few, of which a run with harmfulSeed kills, freezes and cuts off the guest, so that it loses
	// its session in all ways, cuts off the leader and kills a follower.
	harmsToLocks = 5
	harmfulSeed  = 2911
)

// TestLockHistories is TestHistories for flock and fcntl: programs on all hosts lock and unlock a few files in all
// ways while nodes and mounts die, freeze and lose sight of each other. They write pids into the files, their own or those of
// helpers, and leave them there; some are killed while they have a lock. No file is ever removed for that.
func TestLockHistories(t *testing.T) {
	t.Parallel()
	seed := randomSeed(t)
	// Without a lock delay nothing but EIO keeps those who have lost their locks from going on.
	t.Run("fixed seed", func(t *testing.T) {
		testLockHistories(t, harms, harmsToLocks, harmfulSeed, 5*time.Second, longLockDelay)
	})
	t.Run("random seed", func(t *testing.T) { testLockHistories(t, harms, harmsToLocks, seed, 1500*time.Millisecond, 0) })
}

func testLockHistories(t *testing.T, harms []harm, count int, seed uint64, opTimeout, lockDelay time.Duration) {
	t.Parallel()
	t.Logf("seed %d", seed)
	timeout := "--op-timeout=" + opTimeout.String()
	c := testcluster.StartCluster(t, 3, "--session-term="+historyTerm.String(), "--lock-delay="+lockDelay.String(), timeout)
	g := c.AddGuest(t, "m", timeout)
	g.Start(t)
	s := &schedule{c: c, guest: g, term: historyTerm, random: rand.New(rand.NewPCG(seed, 0)), harms: harms}
	b := newBustle(c, s.hosts(), seed)
	b.Calls, b.Files = lockCallsPerClient, []string{"x", "y"}
	stop := b.Start(t)
	b.AwaitPlaying(t)
	s.run(t, testcluster.Faults(count))
	stop()
	began := time.Now()
	checked, undecided := b.CheckLocks(t, opTimeout, lockDelay)
	require.NoError(t, undecided)
	t.Logf("%d histories, checked in %.1fs: %v", b.Dirs(), time.Since(began).Seconds(), checked.Tally())
	assert.Greater(t, len(checked.Calls), 100*b.Dirs(), "calls")
	assert.Greater(t, checked.Tally()["close did not return"], b.Dirs(), "processes that were killed")
	workload.AwaitUnlocked(t, c)
	c.RequireSameState(t)
}

// TestHoldHistories is TestLockHistories for files that are made by those who lock them, with so little time for a call that
// many creations are given up.
func TestHoldHistories(t *testing.T) {
	t.Parallel()
	seed := randomSeed(t)
	t.Logf("seed %d", seed)
	const timeout = "--op-timeout=500ms"
	c := testcluster.StartCluster(t, 3, "--session-term="+historyTerm.String(), "--lock-delay="+longLockDelay.String(), timeout)
	g := c.AddGuest(t, "m", timeout)
	g.Start(t)
	s := &schedule{c: c, guest: g, term: historyTerm, random: rand.New(rand.NewPCG(seed, 0)), harms: harms}
	b := newBustle(c, s.hosts(), seed)
	b.Holds = lockCallsPerClient
	stop := b.Start(t)
	b.AwaitPlaying(t)
	s.run(t, testcluster.Faults(harmsToLocks))
	stop()
	calls, holds := b.CheckHolds(t)
	t.Logf("%d histories, %d holds: %v", b.Dirs(), holds, (&history.LockHistory{Calls: calls}).Tally())
	assert.Greater(t, holds, 10*b.Dirs())
	workload.AwaitUnlocked(t, c)
	c.RequireSameState(t)
}
