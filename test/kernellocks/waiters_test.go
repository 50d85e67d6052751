package kernellocks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// pythonAs is a client that runs as an ordinary user, who need not be able to read its file.
func pythonAs(t testing.TB, uid, client string, args ...string) []string {
	t.Helper()
	text, err := os.ReadFile(suite.ClientPath(t, client))
	require.NoError(t, err)
	return append([]string{"--reuid", uid, "--regid", uid, "--clear-groups", "/usr/bin/python3", "-c", string(text)}, args...)
}

// createTimes are how long creations of an ordinary user take on a host, in order.
func createTimes(t testing.TB, h *hosts.Host, dir string) (times []time.Duration) {
	t.Helper()
	const creations = "200"
	for line := range strings.Lines(h.MustRun(t, "setpriv", pythonAs(t, "1001", "createtimes.py", dir, creations)...)) {
		ns, err := strconv.Atoi(strings.TrimSpace(line))
		require.NoError(t, err)
		times = append(times, time.Duration(ns))
	}
	slices.Sort(times)
	return times
}

func median(times []time.Duration) time.Duration { return times[len(times)/2] }

// processorTime is what a process has used so far.
func processorTime(t testing.TB, p *hosts.Process) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	require.NoError(t, err)
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')'):])
	var ticks int
	for _, field := range fields[12:14] { // utime and stime: proc_pid_stat(5)
		n, err := strconv.Atoi(string(field))
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// load is the part of a processor that a process uses in some time.
func load(t testing.TB, p *hosts.Process) float64 {
	t.Helper()
	const long = 10 * time.Second
	before := processorTime(t, p)
	time.Sleep(long)
	return float64(processorTime(t, p)-before) / float64(long)
}

// resident is the memory of a process, in MiB.
func resident(t testing.TB, p *hosts.Process) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kib >> 10
}

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

// TestWaitersCostNothing has an ordinary user wait for one lock with thousands of threads, and another one create files on the same mount.
// The mount is upgraded and killed meanwhile: all go on waiting, and each gets the lock in the end.
func TestWaitersCostNothing(t *testing.T) {
	waiters := suite.Rounds(1000, 10_000)
	c := suite.StartCluster(t, 3)
	require.NoError(t, os.Chmod(filepath.Dir(c.Net.Dir()), 0o755), "for other users to get to the mount")
	g := c.AddGuest(t, "m")
	g.Environment = []string{"LOCKFS_UNATTENDED=1"}
	g.Start(t)
	g.Host.MustRun(t, "sh", "-c", fmt.Sprintf("mkdir %s; chmod 1777 %[1]s; touch %s; chmod 666 %[2]s", c.Path("times"), c.Path("lock")))
	holder := g.Host.Start("flock", "--close", c.Path("lock"), "sh", "-c", "echo held; exec sleep 100000")
	require.NoError(t, holder.WaitOutput("held"))
	alone, idle := createTimes(t, g.Host, c.Path("times")), load(t, c.Leader().Server)

	began := time.Now()
	crowd := g.Host.Start("setpriv", pythonAs(t, "1000", "waiters.py", c.Path("lock"), strconv.Itoa(waiters))...)
	require.NoError(t, crowd.WaitOutput("waits"))
	awaitWaiters(t, c, waiters)
	t.Logf("%d wait after %v", waiters, time.Since(began))
	beside, busy, memory := createTimes(t, g.Host, c.Path("times")), load(t, c.Leader().Server), resident(t, g.Daemon)
	t.Logf("creations: median %v alone, %v beside %d waiters; longest %v and %v", median(alone), median(beside), waiters, alone[len(alone)-1], beside[len(beside)-1])
	t.Logf("leader: %.1f %% of a processor alone, %.1f %% beside; the mount has %d MiB", 100*idle, 100*busy, memory)
	if os.Getenv("LOCKFS_TEST_LONG") != "" { // speed is no matter of a test beside others
		require.Less(t, median(beside), 2*median(alone)+time.Millisecond)
		require.Less(t, busy-idle, 0.02)
	}
	require.Less(t, memory, 200)

	g.Daemon.Signal(syscall.SIGHUP)
	hosts.Eventually(t, "the mount is upgraded", func() (string, bool) {
		return g.Daemon.Log(), strings.Contains(g.Daemon.Log(), "went on with the mount")
	})
	awaitWaiters(t, c, waiters)
	requests := waitingRequests(t, c)
	g.Daemon.Kill()
	hosts.Eventually(t, "another process goes on with the mount", func() (string, bool) {
		return g.Daemon.Log(), strings.Count(g.Daemon.Log(), "went on with the mount") == 2
	})
	g.Host.MustRun(t, "setpriv", pythonAs(t, "1001", "createtimes.py", c.Path("times"), "1")...)
	time.Sleep(leftWaitPatience)
	require.True(t, slices.Equal(requests, waitingRequests(t, c)), "the same requests wait, at the same places")

	holder.Signal(syscall.SIGTERM)
	require.NoError(t, crowd.WaitOutput(fmt.Sprint("granted ", waiters)))
	require.NoError(t, crowd.Wait())
	c.RequireSameState(t)
}
