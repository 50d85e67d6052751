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
	"lockfs/test/testcluster"
)

// opTimeout is how long a call may take without a quorum (the default of --op-timeout). No call of a witness may take as long.
const opTimeout = 15 * time.Second

func awaitWaiters(t testing.TB, c *testcluster.Cluster, count int) {
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
func waitingRequests(t testing.TB, c *testcluster.Cluster) []waitingRequest {
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

// crowdedMount is a mount on which an ordinary user has thousands of waits, while others work there and on a server.
type crowdedMount struct {
	*testcluster.Guest
	t         *testing.T
	dir       string // in which all users may create names
	witnesses *hostileuser.Witnesses
	calls     int                // of each witness, by which it is judged
	alone     []hostileuser.Seen // without the waits
	idle      float64            // load of the leader without the waits
}

// guestHTTP is where a mount has its metrics.
const guestHTTP = "127.0.0.1:7423"

func newCrowdedMount(t *testing.T) *crowdedMount {
	c := testcluster.StartCluster(t, 3)
	m := &crowdedMount{Guest: c.AddGuest(t, "m", "--http-addr", guestHTTP), t: t, calls: testcluster.Rounds(300, 1000)}
	m.Environment = []string{"LOCKFS_UNATTENDED=1"}
	m.Start(t)
	m.dir = hostileuser.Dir(t, c, m.Host, "users")
	m.witnesses = hostileuser.StartWitnesses(t, m.dir, m.Host, c.Nodes[0].Host)
	m.alone = m.witnesses.Observe(m.calls)
	dirs := m.Host.MustRun(t, "sh", "-c", "chmod -v 700 "+m.dir+"/witness-*") // the crowd is told of no events below these
	require.Equal(t, 2, strings.Count(dirs, "\n"), dirs)
	if testcluster.Long() {
		m.idle = m.load()
	}
	return m
}

// load is that of the leader while no witness works. It takes long to measure.
func (m *crowdedMount) load() float64 {
	m.witnesses.Pause()
	defer m.witnesses.Resume()
	return testcluster.Load(m.t, m.Cluster.Leader().Server)
}

// crowd starts the waits of the ordinary user.
func (m *crowdedMount) crowd(way string, count int, files ...string) *hostileuser.User {
	crowd := hostileuser.Start(m.t, m.Host, hostileuser.HostileUID, m.dir, way, append([]string{strconv.Itoa(count)}, files...)...)
	crowd.Begun(m.t)
	return crowd
}

// requireCheap compares what others see, the leader's load and the memory of the mount with those without waits.
func (m *crowdedMount) requireCheap() {
	m.t.Logf("without the waits: %v", m.alone)
	beside := m.witnesses.Observe(m.calls)
	m.t.Logf("beside them: %v", beside)
	judge := hostileuser.Judge{Longest: opTimeout}
	if testcluster.Long() { // speed is no matter of a test beside others
		judge.SameCost = m.alone
	}
	judge.Require(m.t, beside)
	memory := testcluster.Resident(m.t, m.Daemon)
	m.t.Logf("the mount has %d MiB", memory)
	require.Less(m.t, memory, 200)
	if testcluster.Long() {
		busy := m.load()
		m.t.Logf("the leader uses %.1f %% of a processor without them, and %.1f %% beside", 100*m.idle, 100*busy)
		require.Less(m.t, busy-m.idle, 0.02)
	}
}

// upgrade starts a new program on the mount.
func (m *crowdedMount) upgrade() {
	m.witnesses.Forget()
	m.Daemon.Signal(syscall.SIGHUP)
	hosts.Eventually(m.t, "the mount is upgraded", func() (string, bool) {
		return m.Daemon.Log(), strings.Contains(m.Daemon.Log(), "went on with the mount")
	})
	upgraded := m.witnesses.Seen()
	m.t.Logf("while the mount was upgraded: %v", upgraded)
	hostileuser.Judge{Longest: opTimeout}.Require(m.t, upgraded)
}

// awaitWaits waits until the mount counts so many waits of users.
func (m *crowdedMount) awaitWaits(count int) {
	hosts.Eventually(m.t, fmt.Sprint(count, " wait"), func() (string, bool) {
		metrics, err := testcluster.Get(m.Host, "http://"+guestHTTP+"/metrics")
		_, rest, _ := strings.Cut(metrics, "\nlockfs_budget_used{budget=\"waits\"} ")
		waiting, _, _ := strings.Cut(rest, "\n")
		n, _ := strconv.ParseFloat(waiting, 64)
		return fmt.Sprint(waiting, " ", err), err == nil && int(n) == count
	})
}

// TestWaitersCostNothing has an ordinary user wait for one lock with thousands of threads, and others work on the same mount and on a server.
// The mount is upgraded and killed meanwhile: all go on waiting, and each gets the lock in the end.
func TestWaitersCostNothing(t *testing.T) {
	waiters := testcluster.Rounds(1000, 10_000)
	m := newCrowdedMount(t)
	c := m.Cluster
	m.Host.MustRun(t, "sh", "-c", fmt.Sprintf("touch %s; chmod 666 %[1]s", c.Path("lock")))
	holder := m.Host.Start("flock", "--close", c.Path("lock"), "sh", "-c", "echo held; exec sleep 100000")
	require.NoError(t, holder.WaitOutput("held"))

	began := time.Now()
	crowd := m.crowd("waits", waiters, c.Path("lock"))
	awaitWaiters(t, c, waiters)
	t.Logf("%d wait after %v", waiters, time.Since(began))
	m.requireCheap()
	m.upgrade()
	awaitWaiters(t, c, waiters)
	requests := waitingRequests(t, c)
	m.Daemon.Kill()
	hosts.Eventually(t, "another process goes on with the mount", func() (string, bool) {
		return m.Daemon.Log(), strings.Count(m.Daemon.Log(), "went on with the mount") == 2
	})
	m.witnesses.Observe(10) // a call may have failed while the process was killed
	time.Sleep(leftWaitPatience)
	require.True(t, slices.Equal(requests, waitingRequests(t, c)), "the same requests wait, at the same places")

	holder.Signal(syscall.SIGTERM)
	const some = 1000 // which take seconds
	for granted := some; granted <= waiters; granted += some {
		require.NoError(t, crowd.Process.WaitOutput(fmt.Sprint("granted ", granted, "\n")))
	}
	crowd.End()
	m.witnesses.End()
	c.RequireSameState(t)
}

// TestReadersThatWaitCostNothing is the same for reads of .lockfs/wait, half of them of one lock, and of .lockfs/events. The mount is upgraded
// meanwhile, and then the leader is killed: all go on waiting, and all return in the end.
func TestReadersThatWaitCostNothing(t *testing.T) {
	const locks = 100
	readers := testcluster.Rounds(1000, 10_000)
	for kind, test := range map[string]struct {
		files func(path func(...string) string) []string
		ends  string
	}{
		"locks": {func(path func(...string) string) (files []string) {
			for i := range locks {
				files = append(files, path(fmt.Sprint(".lockfs/wait/held/", i, ".lock")), path(".lockfs/wait/held/0.lock"))
			}
			return files
		}, "rm held/*"},
		"events": {func(path func(...string) string) []string { return []string{path(".lockfs/events")} }, "rm held/0.lock"},
	} {
		t.Run(kind, func(t *testing.T) {
			m := newCrowdedMount(t)
			c := m.Cluster
			m.Host.MustRun(t, "sh", "-c", fmt.Sprintf("cd %s; mkdir held; set -C; for i in $(seq 0 %d); do echo a lock > held/$i.lock; done", c.Path(""), locks-1))
			hosts.Eventually(t, "events tell of all of these", func() (string, bool) {
				events, err := c.Nodes[0].Lockfs("events", "--json", "--since", "10m")
				return fmt.Sprint(events, err), err == nil && strings.Count(events, `"held/`) >= locks
			})

			began := time.Now()
			crowd := m.crowd("reads", readers, test.files(c.Path)...)
			m.awaitWaits(readers)
			t.Logf("%d wait after %v", readers, time.Since(began))
			m.requireCheap()
			m.upgrade()
			m.awaitWaits(readers)
			leader := c.Leader()
			m.witnesses.End()
			leader.Kill()
			m.Host.MustRun(t, "sh", "-c", fmt.Sprintf("cd %s; %s", c.Path(""), test.ends))
			require.NoError(t, crowd.Process.WaitOutput(fmt.Sprint("read ", readers, "\n")))
			require.NotContains(t, crowd.Process.Stdout(), "failed")
			crowd.End()
			leader.Start(t)
			c.RequireSameState(t)
		})
	}
}
