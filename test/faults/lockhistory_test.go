package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/history"
	"lockfs/test/hosts"
	"lockfs/test/suite"
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
	c := suite.StartCluster(t, 3, "--session-term="+historyTerm.String(), "--lock-delay="+lockDelay.String(), timeout)
	g := c.AddGuest(t, "m", timeout)
	g.Start(t)
	s := &schedule{c: c, guest: g, term: historyTerm, random: rand.New(rand.NewPCG(seed, 0)), harms: harms}
	b := &bustle{c: c, hosts: s.hosts(), seed: seed, calls: lockCallsPerClient, files: []string{"x", "y"}}
	stop := b.start(t)
	b.awaitPlaying(t)
	s.run(t, suite.Faults(count))
	stop()
	b.checkLocks(t, opTimeout, lockDelay)
	b.requireFiles(t, c.Nodes[0].Host)
	awaitUnlocked(t, c)
	c.RequireSameState(t)
}

// TestHoldHistories is TestLockHistories for files that are made by those who lock them, with so little time for a call that
// many creations are given up.
func TestHoldHistories(t *testing.T) {
	t.Parallel()
	seed := randomSeed(t)
	t.Logf("seed %d", seed)
	const timeout = "--op-timeout=500ms"
	c := suite.StartCluster(t, 3, "--session-term="+historyTerm.String(), "--lock-delay="+longLockDelay.String(), timeout)
	g := c.AddGuest(t, "m", timeout)
	g.Start(t)
	s := &schedule{c: c, guest: g, term: historyTerm, random: rand.New(rand.NewPCG(seed, 0)), harms: harms}
	b := &bustle{c: c, hosts: s.hosts(), seed: seed, holds: lockCallsPerClient}
	stop := b.start(t)
	b.awaitPlaying(t)
	s.run(t, suite.Faults(harmsToLocks))
	stop()
	calls, err := history.ReadLockCalls(b.records...)
	require.NoError(t, err)
	holds, err := history.CheckHolds(calls)
	require.NoError(t, err)
	t.Logf("%d histories, %d holds: %v", len(b.dirs), holds, (&history.LockHistory{Calls: calls}).Tally())
	assert.Greater(t, holds, 10*len(b.dirs))
	awaitUnlocked(t, c)
	c.RequireSameState(t)
}

// awaitPlaying waits until the first clients have done something, so that the first harm is one to them.
func (b *bustle) awaitPlaying(t testing.TB) {
	t.Helper()
	const much = 5000 // bytes
	hosts.Eventually(t, "all clients play", func() (string, bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		playing := 0
		for _, record := range b.records {
			if info, err := os.Stat(record); err == nil && info.Size() > much {
				playing++
			}
		}
		return fmt.Sprint(playing), playing >= historiesAtOnce*len(b.hosts)*clientsPerHost
	})
}

// checkLocks checks what was seen of locks.
func (b *bustle) checkLocks(t testing.TB, opTimeout, lockDelay time.Duration) {
	t.Helper()
	began := time.Now()
	checked := b.lockHistory(t, opTimeout, lockDelay)
	require.NoError(t, checked.Check(checkTime))
	t.Logf("%d histories, checked in %.1fs: %v", len(b.dirs), time.Since(began).Seconds(), checked.Tally())
	assert.Greater(t, len(checked.Calls), 100*len(b.dirs), "calls")
	assert.Greater(t, checked.Tally()["close did not return"], len(b.dirs), "processes that were killed")
}

// lockHistory is all that was recorded of locks.
func (b *bustle) lockHistory(t testing.TB, opTimeout, lockDelay time.Duration) *history.LockHistory {
	t.Helper()
	calls, err := history.ReadLockCalls(b.records...)
	require.NoError(t, err)
	slack := lockDelay / 20               // cluster time, in which the delay is measured, may run a little faster
	const prompt = 300 * time.Millisecond // clients interrupt themselves sooner
	return &history.LockHistory{Calls: calls, OpTimeout: opTimeout, Prompt: prompt, LockDelay: lockDelay - slack}
}

// requireFiles requires that the files that were locked are still there: nobody has removed one.
func (b *bustle) requireFiles(t testing.TB, on *hosts.Host) {
	t.Helper()
	require.Len(t, b.inodes, len(b.dirs)*len(b.files))
	script := []string{"-ec", `for d; do stat -c %i "$d/x" "$d/y"; done`, "sh"}
	require.Equal(t, b.inodes, strings.Fields(on.MustRun(t, "sh", append(script, b.dirs...)...)))
}

// awaitUnlocked waits until nobody has or wants a lock of flock or fcntl any more.
func awaitUnlocked(t testing.TB, c *suite.Cluster) {
	t.Helper()
	hosts.Eventually(t, "no lock is left", func() (string, bool) {
		text, err := c.Nodes[0].Lockfs("locks", "--json")
		if err != nil {
			return err.Error(), false
		}
		var locks []struct {
			Advisory []any `json:"advisory_locks"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &locks))
		for _, lock := range locks {
			if len(lock.Advisory) > 0 {
				return text, false
			}
		}
		return "", true
	})
}
