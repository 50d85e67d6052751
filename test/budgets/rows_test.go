package budgets

import (
	"math"
	"regexp"
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

// cluster is where a user is hostile on the host of a mount, and others work there and on a server's host.
type cluster struct {
	*testcluster.Cluster
	guest     *testcluster.Guest
	server    *testcluster.Node
	dir       string
	witnesses *hostileuser.Witnesses
	alone     []hostileuser.Seen
}

// start starts one server in memory with small limits, or in a long run three servers with those that they have by themselves.
func start(t *testing.T) *cluster {
	t.Helper()
	c := new(cluster)
	mountFlags := []string{"--http-addr", "127.0.0.1:7422"}
	if testcluster.Long() {
		c.Cluster = testcluster.StartCluster(t, 3, "--max-inodes", "40000", "--max-bytes", "80M", "--max-inodes-per-user", "20000", "--max-bytes-per-user", "40M")
	} else {
		c.Cluster, _ = testcluster.StartInMemory(t, "--max-locks-per-user", "600", "--max-locks-per-file", "500",
			"--max-inodes", "1600", "--max-inodes-per-user", "800", "--max-bytes", "16M", "--max-bytes-per-user", "8M")
		mountFlags = append(mountFlags, "--max-waits-per-user", "300")
	}
	c.server = c.Leader()
	c.guest = c.AddGuest(t, "m", mountFlags...)
	c.guest.Start(t)
	c.dir = hostileuser.Dir(t, c.Cluster, c.guest.Host, "users")
	c.witnesses = hostileuser.StartWitnesses(t, c.dir, c.guest.Host, c.server.Host)
	c.alone = c.witnesses.Observe(testcluster.Rounds(100, 1000))
	t.Logf("without a hostile user: %v", c.alone)
	return c
}

// requireUnharmed requires that the witnesses notice nothing of a user.
func (c *cluster) requireUnharmed(t *testing.T, what string) {
	t.Helper()
	seen := c.witnesses.Observe(testcluster.Rounds(100, 1000))
	t.Logf("%s: %v", what, seen)
	hostileuser.Judge{Longest: opTimeout}.Require(t, seen)
}

// requireLogged waits for what a daemon says of a budget: an error number has no text.
func (c *cluster) requireLogged(t *testing.T, words ...string) {
	t.Helper()
	hosts.Eventually(t, "the log of the mount names the budget", func() (string, bool) {
		for line := range strings.Lines(c.guest.Daemon.Log()) {
			all := strings.Contains(line, "operation refused")
			for _, word := range words {
				all = all && strings.Contains(line, word)
			}
			if all {
				return line, true
			}
		}
		return c.guest.Daemon.Log(), false
	})
}

// row is one way to be hostile.
type row struct {
	name    string
	way     string
	numbers []string
	prepare func(*testing.T, *cluster)
	check   func(*testing.T, *cluster, *hostileuser.User, string)
}

func rounds(few, many int) string { return strconv.Itoa(testcluster.Rounds(few, many)) }

// rows are those of the table in the issue, as far as a user of a mount is enough for them.
func (c *cluster) rows(t *testing.T) []row {
	t.Helper()
	logged := func(words ...string) func(*testing.T, *cluster, *hostileuser.User, string) {
		return func(t *testing.T, c *cluster, _ *hostileuser.User, _ string) {
			t.Helper()
			c.requireLogged(t, words...)
			listed := c.guest.Host.MustRun(t, c.Program, "quota", "list")
			require.Regexp(t, words[1]+` +user 1000, host m +\d+ +\d+ +`+words[2], listed)
		}
	}
	return []row{
		{name: "waits", way: "waits", numbers: []string{rounds(250, 10_000)}, check: requireUpgrade},
		{
			name: "waits beyond the budget", way: "waits", numbers: []string{rounds(400, 17_000)},
			check: logged("user 1000", "waits", "--max-waits-per-user"),
		},
		{name: "waits with signals", way: "signals", numbers: []string{rounds(100, 250)}},
		{name: "ranges with waiters", way: "ranges", numbers: []string{rounds(150, 4000), rounds(50, 1000), rounds(8, 32)}},
		{name: "all the locks", way: "ranges", numbers: []string{rounds(1000, 100_000), "0", "0"}, check: requireLocksOfOthers},
		{
			name: "open lists", way: "opens", numbers: []string{rounds(200, 1000), c.Path(".lockfs/locks.jsonl")},
			prepare: makeLocks, check: requireSmallMemory,
		},
		{
			name: "open files beyond the budget", way: "opens", numbers: []string{rounds(400, 17_000), c.Path(".lockfs/status")},
			check: logged("user 1000", "open control files", "--max-waits-per-user"),
		},
		{name: "names", way: "names", numbers: []string{rounds(16, 64)}, check: requireAdministrativeEvents},
	}
}

// TestOneUserTakesNothingFromOthers: an ordinary user uses up each resource that a mount has for users. Ordinary users of the same host, and of
// another host, work as before.
func TestOneUserTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, r := range c.rows(t) {
		ran := t.Run(r.name, func(t *testing.T) {
			if r.prepare != nil {
				r.prepare(t, c)
			}
			began := time.Now()
			u := hostileuser.Start(t, c.guest.Host, hostileuser.HostileUID, c.dir, r.way, r.numbers...)
			begun := u.Begun(t)
			t.Logf("after %v the user has %s", time.Since(began).Round(time.Millisecond), begun)
			c.requireUnharmed(t, "beside "+r.way)
			if r.check != nil {
				r.check(t, c, u, begun)
				c.requireUnharmed(t, "after the check")
			}
			u.EndAndForget(t, c.guest.Host)
			hosts.Eventually(t, "requests of the killed user have ended", func() (string, bool) {
				listed, err := c.server.Lockfs("quota", "list")
				return listed, err == nil && !strings.Contains(listed, "user 1000, host m ")
			})
		})
		if !ran {
			return // what is left would be in the way of the next
		}
	}
}

// requireUpgrade upgrades the mount while the user waits: all go on waiting, and nobody else notices.
func requireUpgrade(t *testing.T, c *cluster, _ *hostileuser.User, begun string) {
	t.Helper()
	waits, _, _ := strings.Cut(begun, " ")
	c.awaitWaiters(t, waits)
	c.witnesses.Forget()
	c.guest.Daemon.Signal(syscall.SIGHUP)
	hosts.Eventually(t, "the mount is upgraded", func() (string, bool) {
		return c.guest.Daemon.Log(), strings.Contains(c.guest.Daemon.Log(), "went on with the mount")
	})
	seen := c.witnesses.Seen()
	t.Logf("during the upgrade: %v", seen)
	hostileuser.Judge{Longest: opTimeout}.Require(t, seen)
	c.awaitWaiters(t, waits)
}

func (c *cluster) awaitWaiters(t *testing.T, count string) {
	t.Helper()
	hosts.Eventually(t, count+" requests wait", func() (string, bool) {
		waiting := metric(c.server.Get("/metrics"))("lockfs_kernel_lock_waiters")
		return waiting, waiting == count
	})
}

// metric returns a function that finds the value of a metric without labels in what an endpoint answered.
func metric(text string, err error) func(string) string {
	return func(name string) string {
		if err != nil {
			return err.Error()
		}
		_, rest, _ := strings.Cut(text, "\n"+name+" ")
		value, _, _ := strings.Cut(rest, "\n")
		return value
	}
}

// requireLocksOfOthers: the user has got as many locks as the budget has, which the list of budgets shows. Root of the host, and an ordinary
// user of another host, lock the same file.
func requireLocksOfOthers(t *testing.T, c *cluster, _ *hostileuser.User, begun string) {
	t.Helper()
	require.Contains(t, begun, "ENOLCK")
	c.requireLogged(t, "flock and fcntl locks", "--max-locks-per-")
	listed, err := c.server.Lockfs("quota", "list")
	require.NoError(t, err)
	require.Regexp(t, `flock and fcntl locks +user 1000, host m +`+strings.Fields(begun)[0], listed)
	const lock = `import fcntl, sys; fcntl.lockf(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 1 << 40)`
	file := c.dir + "/hostile-1000-ranges/ranges"
	c.guest.Host.MustRun(t, "python3", "-c", lock, file)
	c.server.Host.MustRun(t, "python3", "-c", lock, file)
}

// makeLocks makes locks that the lists tell of.
func makeLocks(t *testing.T, c *cluster) {
	t.Helper()
	const script = `import os, sys
for number in range(int(sys.argv[2])): os.mkdir("%s/%d.lock" % (sys.argv[1], number))`
	dir := c.Path("many")
	c.server.Host.MustRun(t, "mkdir", dir)
	c.server.Host.MustRun(t, "python3", "-c", script, dir, rounds(400, 10_000))
	t.Cleanup(func() { c.server.Host.MustRun(t, "rm", "-rf", dir) })
}

// requireSmallMemory: descriptors of lists, of however many locks, cost neither the mount nor a server much.
func requireSmallMemory(t *testing.T, c *cluster, _ *hostileuser.User, begun string) {
	t.Helper()
	require.NotContains(t, begun, "EMFILE")
	const most = 200 // MiB
	for _, p := range []*hosts.Process{c.guest.Daemon, c.server.Server} {
		memory := testcluster.Resident(t, p)
		t.Logf("%s has %d MiB", p.Host().Name(), memory)
		require.Less(t, memory, most)
	}
}

// requireAdministrativeEvents: however many events of locks there are, those of administrators and of refusals stay, in the state and in
// files. The state keeps 10,000 events of locks, two of each name.
func requireAdministrativeEvents(t *testing.T, c *cluster, u *hostileuser.User, _ string) {
	t.Helper()
	const ruleSet, kept = "rule_set", 10_000
	c.server.SetRule(t, "administrators/*", "--stale-after", "1h")
	before := names(u)
	hosts.Eventually(t, "the user's names turn over the events of locks", func() (string, bool) {
		made := names(u) - before
		return strconv.Itoa(made), 2*made > kept
	})
	rule, oldest := uint64(0), uint64(math.MaxUint64)
	for _, e := range c.server.Events(t) {
		switch e.Event {
		case ruleSet:
			rule = e.Number
		case "lock_acquired", "lock_released":
			oldest = min(oldest, e.Number)
		}
	}
	require.NotZero(t, rule, "lockfs events has the rule")
	require.Less(t, rule, oldest, "all events of locks are newer")
	c.server.Host.MustRun(t, "grep", "-q", ruleSet, c.server.Data+"/audit-admin.jsonl")
}

var namesMade = regexp.MustCompile(`names (\d+)\n`)

// names returns how many names the user has created and removed.
func names(u *hostileuser.User) (made int) {
	if all := namesMade.FindAllStringSubmatch(u.Process.Stdout(), -1); len(all) > 0 {
		made, _ = strconv.Atoi(all[len(all)-1][1])
	}
	return made
}

// TestTwoUsersLeaveRoomForLocks: two users fill inodes and bytes, up to the last one. A third user still takes locks, on both hosts.
func TestTwoUsersLeaveRoomForLocks(t *testing.T) {
	t.Parallel()
	c := start(t)
	var full []string
	for _, uid := range []string{hostileuser.HostileUID, hostileuser.AccompliceUID} {
		full = append(full, hostileuser.Start(t, c.guest.Host, uid, c.dir, "fills").Begun(t))
	}
	t.Logf("the users have %v", full)
	require.Contains(t, full[0], "EDQUOT")
	require.Contains(t, full[1], "ENOSPC")
	c.requireLogged(t, "user 1000", "lockfs quota set --uid 1000")
	c.requireUnharmed(t, "beside users who filled everything")
	for _, h := range []*hosts.Host{c.guest.Host, c.server.Host} {
		lock := c.dir + "/" + h.Name() + "-deploy.lock"
		h.MustRun(t, "setpriv", "--reuid", "1003", "--regid", "1003", "--clear-groups", "mkdir", lock)
		h.MustRun(t, "setpriv", "--reuid", "1003", "--regid", "1003", "--clear-groups", "rmdir", lock)
	}
}

// TestOneUserTakesNoConnectionsFromOthers: a user has as many idle connections to the HTTP port as it takes, and as many streams of events on
// the socket of the page. Health checks, and `lockfs ui` of root and of another user, are answered.
func TestOneUserTakesNoConnectionsFromOthers(t *testing.T) {
	t.Parallel()
	c, h := testcluster.StartInMemory(t)
	n := c.Nodes[0]
	dir := hostileuser.Dir(t, c, h, "users")
	address, port, _ := strings.Cut(n.HTTPAddr(), ":")
	idle := hostileuser.Start(t, h, hostileuser.HostileUID, dir, "connects", "1100", address, port)
	require.Equal(t, "1100 connections", idle.Begun(t))
	socket := strings.TrimSpace(h.MustRun(t, "sh", "-c", "find /run/lockfs -name 'page-*' -type s | head -n 1"))
	streams := hostileuser.Start(t, h, hostileuser.HostileUID, dir, "streams", "128", socket)
	require.Equal(t, "16 answers 200, 112 answers 429", streams.Begun(t))
	witnesses := hostileuser.StartWitnesses(t, dir, h)
	for range 3 {
		for _, path := range []string{"/healthz", "/metrics"} {
			began := time.Now()
			answer, err := n.Get(path)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(answer, "200 "), answer)
			require.Less(t, time.Since(began), 5*time.Second)
		}
	}
	program := installed(t, c, h)
	for _, uid := range []string{"0", hostileuser.WitnessUID} {
		ui := h.Start("setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", program, "ui", "--print")
		require.NoError(t, ui.WaitOutput("End with Ctrl-C."))
		ui.Kill()
	}
	hostileuser.Judge{Longest: opTimeout}.Require(t, witnesses.Observe(100))

	metrics, err := n.Get("/metrics")
	require.NoError(t, err)
	for _, series := range []string{
		`lockfs_budget_user_used{budget="live pages and event streams",host="",uid="1000"} 16`,
		`lockfs_budget_exceeded_total{budget="live pages and event streams"} 112`,
		`lockfs_budget_limit{budget="requests by HTTP"}`, `lockfs_budget_limit{budget="connections to the port"}`,
		`lockfs_budget_limit{budget="connections to the socket for commands"}`, `lockfs_budget_limit{budget="requests by the socket of the page"}`,
	} {
		require.Contains(t, metrics, "\n"+series)
	}
}

// installed is the program at a path that all users can reach.
func installed(t *testing.T, c *testcluster.Cluster, h *hosts.Host) string {
	t.Helper()
	path := c.Net.Dir() + "/lockfs-of-all"
	h.MustRun(t, "install", "-m", "755", c.Program, path)
	return path
}
