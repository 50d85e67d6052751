package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// goneOn is what a program says that goes on with a mount.
const goneOn = "went on with the mount"

// awaitUpgrade waits until a mount has been handed over for the n-th time.
func awaitUpgrade(t testing.TB, mount *hosts.Process, n int) {
	t.Helper()
	hosts.Eventually(t, fmt.Sprint("upgrade ", n), func() (string, bool) {
		seen := strings.Count(mount.Log(), goneOn)
		return fmt.Sprint(seen, " upgrades"), seen >= n
	})
}

// user is a program that uses a mount in every way at once.
type user struct{ *hosts.Process }

func startUser(t testing.TB, h *hosts.Host, before ...string) user {
	t.Helper()
	u := user{h.Start(before[0], before[1:]...)}
	require.NoError(t, u.WaitOutput("working"))
	return u
}

// requireUnnoticed ends it, which has noticed nothing but that a call took longer.
func (u user) requireUnnoticed(t testing.TB) {
	t.Helper()
	u.Signal(syscall.SIGTERM)
	err := u.Wait()
	var said struct {
		Longest  map[string]float64
		Counts   map[string]int
		Failures []string
	}
	_, text, _ := strings.Cut(u.Stdout(), "\n")
	require.NoError(t, json.Unmarshal([]byte(text), &said), "%v: %s", err, text)
	require.Empty(t, said.Failures)
	require.NoError(t, err)
	for name := range said.Longest {
		require.NotZero(t, said.Counts[name])
	}
	t.Logf("calls %v, longest of each %v", said.Counts, said.Longest)
}

// pauses are those of a mount, as its log has them.
func pauses(t testing.TB, mount *hosts.Process) (found []time.Duration) {
	t.Helper()
	for _, match := range pauseLogged.FindAllStringSubmatch(mount.Log(), -1) {
		pause, err := time.ParseDuration(match[1])
		require.NoError(t, err)
		found = append(found, pause)
	}
	return found
}

var pauseLogged = regexp.MustCompile(goneOn + `.* pause=(\S+)`)

// TestMountIsUpgraded hands a mount over again and again, under programs that use it, one of which sees it in another mount namespace.
// Nothing fails, and nobody gets a lock that one of them has.
func TestMountIsUpgraded(t *testing.T) {
	t.Parallel()
	const upgrades = 100
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	p := c.MountOn(t, h, c.Servers())
	h.MustRun(t, "mkdir", c.Path("below"))
	client := testcluster.ClientPath(t, "unnoticed.py")
	outside := startUser(t, h, "python3", client, c.Mount)
	inside := startUser(t, h, "unshare", "--mount", "sh", "-ec", `mount --bind "$1" /mnt; exec python3 "$2" /mnt`, "sh", c.Path("below"), client)
	for n := range upgrades {
		p.Signal(syscall.SIGHUP)
		awaitUpgrade(t, p, n+1)
		h.MustRun(t, "touch", c.Path("between")) // it works before the next one
		for _, name := range []string{"held", "below/held"} {
			_, err := c.Nodes[0].Host.Run("flock", "--nonblock", c.Path(name), "true")
			require.Error(t, err, "%s is locked after upgrade %d", name, n+1)
		}
	}
	for _, u := range []user{outside, inside} {
		u.requireUnnoticed(t)
	}
	paused := pauses(t, p)
	require.Len(t, paused, upgrades)
	logPauses(t, "mount", paused)
	require.Equal(t, 1, testcluster.CountMounts(t, h, c.Mount))
	c.Nodes[0].AwaitSession(t, "m", "still the same session", testcluster.OneSession)
	require.NoError(t, p.Stop())
	c.Nodes[0].AwaitSession(t, "m", "the session ends with the mount", testcluster.NoSession)
}

// TestServerIsUpgraded hands the mounts of three servers over, one after the other, under programs that use each. Whoever leads has another
// one lead before. Nothing fails, and nobody gets a lock that one of them has.
func TestServerIsUpgraded(t *testing.T) {
	t.Parallel()
	const upgrades = 4
	c := testcluster.StartCluster(t, 3)
	var users []user
	for _, n := range c.Nodes {
		n.Host.MustRun(t, "mkdir", c.Path(n.Name))
		users = append(users, startUser(t, n.Host, "python3", testcluster.ClientPath(t, "unnoticed.py"), c.Path(n.Name)))
	}
	paused := make(map[string][]time.Duration)
	done := make(map[string]int)
	for range upgrades {
		leader := c.Leader()
		for _, n := range append([]*testcluster.Node{leader}, c.Others(leader)...) {
			role := "follower"
			if c.Leader() == n {
				role = "leader"
			}
			pause := upgradeServer(t, n, done[n.Name])
			done[n.Name]++
			paused[role] = append(paused[role], pause)
			n.Host.MustRun(t, "touch", c.Path("between"))
			other := c.Others(n)[0]
			_, err := other.Host.Run("flock", "--nonblock", c.Path(n.Name, "held"), "true")
			require.Error(t, err, "%s has it", n.Name)
		}
	}
	for _, u := range users {
		u.requireUnnoticed(t)
	}
	for _, role := range []string{"leader", "follower"} {
		logPauses(t, role, paused[role])
	}
}

// TestTheOnlyServerIsUpgraded hands the mount of a server over that nobody stands in for.
func TestTheOnlyServerIsUpgraded(t *testing.T) {
	t.Parallel()
	const upgrades = 5
	c := testcluster.StartCluster(t, 1)
	n := c.Nodes[0]
	u := startUser(t, n.Host, "python3", testcluster.ClientPath(t, "unnoticed.py"), c.Mount)
	var paused []time.Duration
	for upgrade := range upgrades {
		paused = append(paused, upgradeServer(t, n, upgrade))
		n.Host.MustRun(t, "touch", c.Path("between"))
		_, err := n.Host.Run("flock", "--nonblock", c.Path("held"), "true")
		require.Error(t, err)
	}
	u.requireUnnoticed(t)
	logPauses(t, "only server", paused)
	n.AwaitSession(t, n.Name, "still the same session", testcluster.OneSession)
}

// upgradeServer hands the mount of a server over that was handed over some times already, waits until the server is there again, and answers
// the pause.
func upgradeServer(t testing.TB, n *testcluster.Node, before int) time.Duration {
	t.Helper()
	n.Server.Signal(syscall.SIGHUP)
	awaitUpgrade(t, n.Server, before+1)
	hosts.Eventually(t, n.Name+" shows its mount again", func() (string, bool) { // which it does last
		status, err := n.Status()
		return fmt.Sprintf("%+v %v", status, err), slices.ContainsFunc(status.Nodes, func(s testcluster.NodeStatus) bool {
			return s.Name == n.Name && s.Mount != ""
		})
	})
	return pauses(t, n.Server)[before]
}

// logPauses is for those of one kind. How long they are on a machine at leisure, lockfs/test/speed measures (BenchmarkUpgrade).
func logPauses(t testing.TB, kind string, paused []time.Duration) {
	t.Helper()
	slices.Sort(paused)
	t.Logf("%s: pauses: median %v, longest %v", kind, paused[len(paused)/2], paused[len(paused)-1])
}

// TestUpgradeToAProgramThatDoesNotFit leaves the mount to the one that serves it.
func TestUpgradeToAProgramThatDoesNotFit(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	h := c.AddClient(t, "m")
	program := c.Path("..", "lockfs-of-m")
	h.MustRun(t, "cp", c.Program, program)
	p := h.Start(program, slices.Concat([]string{"mount"}, c.MountFlags(t, "m", c.Servers()), []string{c.Mount})...)
	require.NoError(t, p.WaitOutput("lockfs: ready at "+c.Mount))
	require.NoError(t, os.Remove(program))
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho I am another\nexit 1\n"), 0o755))
	p.Signal(syscall.SIGHUP)
	require.NoError(t, p.WaitOutput("I am another"))
	testcluster.RequireLocking(t, c, h, c.Nodes[0].Host)
	require.NotContains(t, p.Log(), goneOn)
	require.NoError(t, p.Stop())
}

// TestUpUpgrades replaces the program and runs lockfs up, as an installation does.
func TestUpUpgrades(t *testing.T) {
	t.Parallel()
	h := newUpHost(t, hosts.New(t), "a")
	built := h.program
	h.install(t, built)
	h.mustLockfs(t, "up", "--bootstrap")
	daemon := h.daemon(t)
	u := startUser(t, h.Host, "python3", testcluster.ClientPath(t, "unnoticed.py"), h.mount)
	h.install(t, built)
	require.Contains(t, h.mustLockfs(t, "up"), "now runs the newest program")
	require.Equal(t, daemon, h.daemon(t))
	require.NotContains(t, h.mustLockfs(t, "up"), "now runs the newest program", "once")
	u.requireUnnoticed(t)
	h.mustLockfs(t, "down")
}
