package kernellocks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hostileuser"
	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// opTimeout is how long a call may take without a quorum (the default of --op-timeout). No call of a witness may take as long.
const opTimeout = 15 * time.Second

func awaitWaiters(t testing.TB, c *suite.Cluster, count int) {
	t.Helper()
	hosts.Eventually(t, fmt.Sprint(count, " requests wait"), func() (string, bool) {
		metrics, err := c.Leader().Get("/metrics")
		_, rest, _ := strings.Cut(metrics, "\nlockfs_kernel_lock_waiters ")
		waiting, _, _ := strings.Cut(rest, "\n")
		n, _ := strconv.ParseFloat(waiting, 64)
		return fmt.Sprint(waiting, " ", err), err == nil && int(n) == count
	})
}

// leftWaitPatience is longer than requests of a killed process wait for a program that asks again.
const leftWaitPatience = 7 * time.Second

// waitingRequest is one of a thread.
type waitingRequest struct {
	State string
	PID   int
}

// waitingRequests are the requests that wait for the lock, in the order in which they will get it.
func waitingRequests(t testing.TB, c *suite.Cluster) []waitingRequest {
	t.Helper()
	text, err := c.Nodes[0].Lockfs("locks", "--json", "lock")
	require.NoError(t, err)
	var list []struct {
		Advisory []waitingRequest `json:"advisory_locks"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	require.Len(t, list, 1)
	return list[0].Advisory
}

// TestWaitersCostNothing has an ordinary user wait for one lock with thousands of threads, and others work on the same mount and on a server.
// The mount is upgraded and killed meanwhile: all go on waiting, and each gets the lock in the end.
func TestWaitersCostNothing(t *testing.T) {
	waiters := suite.Rounds(1000, 10_000)
	c := suite.StartCluster(t, 3)
	g := c.AddGuest(t, "m")
	g.Environment = []string{"LOCKFS_UNATTENDED=1"}
	g.Start(t)
	dir := hostileuser.Dir(t, c, g.Host, "users")
	witnesses := hostileuser.StartWitnesses(t, dir, g.Host, c.Nodes[0].Host)
	g.Host.MustRun(t, "sh", "-c", fmt.Sprintf("touch %s; chmod 666 %[1]s", c.Path("lock")))
	holder := g.Host.Start("flock", "--close", c.Path("lock"), "sh", "-c", "echo held; exec sleep 100000")
	require.NoError(t, holder.WaitOutput("held"))
	calls := suite.Rounds(300, 1000)
	alone := witnesses.Observe(calls)
	// The load of the leader while no witness works, which takes long to measure.
	load := func() float64 {
		witnesses.Pause()
		defer witnesses.Resume()
		return suite.Load(t, c.Leader().Server)
	}
	idle := 0.0
	if suite.Long() {
		idle = load()
	}

	began := time.Now()
	crowd := hostileuser.Start(t, g.Host, hostileuser.HostileUID, dir, "waits", strconv.Itoa(waiters), c.Path("lock"))
	crowd.Begun(t)
	awaitWaiters(t, c, waiters)
	t.Logf("%d wait after %v; without them: %v", waiters, time.Since(began), alone)
	beside := witnesses.Observe(calls)
	t.Logf("beside them: %v", beside)
	judge := hostileuser.Judge{Longest: opTimeout}
	if suite.Long() { // speed is no matter of a test beside others
		judge.SameCost = alone
	}
	judge.Require(t, beside)
	memory := suite.Resident(t, g.Daemon)
	t.Logf("the mount has %d MiB", memory)
	require.Less(t, memory, 200)
	if suite.Long() {
		busy := load()
		t.Logf("the leader uses %.1f %% of a processor without them, and %.1f %% beside", 100*idle, 100*busy)
		require.Less(t, busy-idle, 0.02)
	}

	witnesses.Forget()
	g.Daemon.Signal(syscall.SIGHUP)
	hosts.Eventually(t, "the mount is upgraded", func() (string, bool) {
		return g.Daemon.Log(), strings.Contains(g.Daemon.Log(), "went on with the mount")
	})
	judge.SameCost = nil
	upgraded := witnesses.Seen()
	t.Logf("while the mount was upgraded: %v", upgraded)
	judge.Require(t, upgraded)
	awaitWaiters(t, c, waiters)
	requests := waitingRequests(t, c)
	g.Daemon.Kill()
	hosts.Eventually(t, "another process goes on with the mount", func() (string, bool) {
		return g.Daemon.Log(), strings.Count(g.Daemon.Log(), "went on with the mount") == 2
	})
	witnesses.Observe(10) // a call may have failed while the process was killed
	time.Sleep(leftWaitPatience)
	require.True(t, slices.Equal(requests, waitingRequests(t, c)), "the same requests wait, at the same places")

	holder.Signal(syscall.SIGTERM)
	const some = 1000 // which take seconds
	for granted := some; granted <= waiters; granted += some {
		require.NoError(t, crowd.Process.WaitOutput(fmt.Sprint("granted ", granted, "\n")))
	}
	crowd.End()
	witnesses.End()
	c.RequireSameState(t)
}
