package operation

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestDev runs the program as the README says, for root and for an ordinary user.
func TestDev(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"root", "nobody"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			host := hosts.New(t).Host("a")
			program := installFor(t, host, user)
			as := asUser(t, user)
			// Twice, as the locks stay.
			for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
				dev := host.Start(as[0], append(as[1:], "env", "--chdir=/mnt", program, "dev")...)
				require.NoError(t, dev.WaitOutput("lockfs: ready at "))
				assert.Contains(t, dev.Stdout(), "locks\n")
				run := func(script string) (string, error) {
					return host.Run(as[0], append(as[1:], "sh", "-c", "cd /mnt/locks; "+script)...)
				}
				if signal == syscall.SIGTERM {
					_, err := run("set -C; echo held > lock")
					require.NoError(t, err)
					tried, err := run(whatToTry(t, dev))
					require.NoError(t, err)
					require.Contains(t, tried, "format: pid\n")
					require.NotContains(t, tried, "it is data")
				}
				_, err := run("set -C; echo stolen > lock")
				require.Error(t, err)
				content, err := run("cat lock")
				require.NoError(t, err)
				require.Equal(t, "held\n", content)

				dev.Signal(signal)
				require.NoError(t, dev.Wait(), "after %v", signal)
				require.Zero(t, testcluster.CountMounts(t, host, "/mnt/locks"))
			}
		})
	}
}

// whatToTry is a script of the three lines that lockfs dev prints, of which the first has to fail when it is repeated.
func whatToTry(t testing.TB, dev *hosts.Process) string {
	t.Helper()
	require.NoError(t, dev.WaitOutput("rm locks/try.lock\n"))
	_, lines, _ := strings.Cut(dev.Stdout(), "in another shell:\n")
	try := strings.Split(strings.TrimSpace(lines), "\n")
	require.Len(t, try, 3)
	return "set -e; cd /mnt; PATH=/mnt:$PATH\n" + try[0] + "\nif " + try[0] + "\nthen exit 9; fi\n" + try[1] + "\n" + try[2]
}

// TestDataBelowTheMountIsRefused starts a node with its data where it would mount the locks: nothing is made there.
func TestDataBelowTheMountIsRefused(t *testing.T) {
	t.Parallel()
	host := hosts.New(t).Host("a")
	program := installFor(t, host, "root")
	for _, command := range [][]string{
		{"dev", "/mnt/locks", "--data", "/mnt/locks/data"},
		{"server", "--insecure", "--name", "a", "--data", "/mnt/locks/data", "--mount", "/mnt/locks"},
	} {
		_, err := host.Run(program, command...)
		require.ErrorContains(t, err, "choose another --data")
		require.Empty(t, host.MustRun(t, "sh", "-c", "cd /mnt; ls -d locks* || true"))
	}
}

// TestTwoDevs has commands reach each of two on a host at its socket.
func TestTwoDevs(t *testing.T) {
	t.Parallel()
	host := hosts.New(t).Host("a")
	program := installFor(t, host, "root")
	start := func(dir string) *hosts.Process {
		dev := host.Start("env", "--chdir=/mnt", program, "dev", dir)
		require.NoError(t, dev.WaitOutput("lockfs: ready at "))
		return dev
	}
	first, second := start("first"), start("second")
	host.MustRun(t, "mkdir", "/mnt/first/one.lock", "/mnt/second/two.lock")
	locksAt := func(socket string) string {
		return host.MustRun(t, program, "locks", "--socket", "/run/lockfs/"+socket)
	}
	require.NotContains(t, locksAt("dev-mnt-first.sock"), "two")
	require.Contains(t, locksAt("dev-mnt-second.sock"), "two")
	_, err := host.Run(program, "locks")
	require.ErrorContains(t, err, "--socket /run/lockfs/dev-mnt-second.sock", "it is not known which is meant")
	require.NoError(t, second.Stop())
	require.Contains(t, host.MustRun(t, program, "locks"), "one")
	require.NoError(t, first.Stop())
	_, err = host.Run(program, "locks")
	require.ErrorContains(t, err, "no lockfs daemon runs on this host (looked in /run/lockfs)")
}

// installFor gives a host what an ordinary machine has: a /dev/fuse for everybody,
// and a copy of the program and a directory (/mnt) that the user can use. It
// answers the program's path there.
func installFor(t testing.TB, host *hosts.Host, user string) string {
	t.Helper()
	host.MustRun(t, "sh", "-ec", `
		mount -t tmpfs -o mode=755 tmpfs /mnt
		mknod -m 666 /mnt/fuse c 10 229
		mount --bind /mnt/fuse /dev/fuse
		cp "$1" /mnt/lockfs
		chown "$2": /mnt`, "sh", testcluster.Program(t), user)
	return "/mnt/lockfs"
}

// asUser is how a command is run as some user, without a process in between.
func asUser(t testing.TB, user string) []string {
	t.Helper()
	return []string{"setpriv", "--reuid", user, "--regid", "65534", "--clear-groups", "env", "HOME=/mnt", "USER=" + user}
}

func TestServerStopsCleanly(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	leader := c.Leader()
	leader.Host.MustRun(t, "sh", "-c", "echo held > "+c.Path("lock"))
	for _, n := range append(c.Others(leader), leader) {
		require.Equal(t, 1, testcluster.CountMounts(t, n.Host, c.Mount))
		n.Stop(t)
		require.Zero(t, testcluster.CountMounts(t, n.Host, c.Mount), "on %s", n.Name)
	}
	for _, n := range c.Nodes {
		n.Launch()
	}
	for _, n := range c.Nodes {
		n.AwaitReady(t)
		require.Equal(t, "held\n", n.Host.MustRun(t, "cat", c.Path("lock")))
	}
	// A mount that is in use does not keep the program from ending.
	n := c.Nodes[0]
	user := n.Host.Start("sh", "-c", "cd "+c.Mount+" && echo inside && exec sleep 1000")
	require.NoError(t, user.WaitOutput("inside"))
	n.Stop(t)
	require.Zero(t, testcluster.CountMounts(t, n.Host, c.Mount), "after a stop while in use")
}

// TestEveryNodeServes does on each node what is then seen on all.
func TestEveryNodeServes(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	for _, n := range c.Nodes {
		lock := c.Path("taken-on-" + n.Name)
		n.Host.MustRun(t, "sh", "-c", "set -C; echo "+n.Name+" > "+lock)
		var first string
		for _, other := range c.Nodes {
			require.Equal(t, n.Name+"\n", other.Host.MustRun(t, "cat", lock), "seen on %s", other.Name)
			_, err := other.Host.Run("sh", "-c", "set -C; echo stolen > "+lock)
			require.Error(t, err, "taken again on %s", other.Name)
			seen := other.Host.MustRun(t, "stat", "--format", "%i %h %s %f %y", lock)
			if first == "" {
				first = seen
			}
			require.Equal(t, first, seen, "seen on %s", other.Name)
		}
	}
	for _, n := range c.Nodes {
		require.Equal(t, "ok", healthOf(t, n))
		metrics, err := n.Get("/metrics")
		require.NoError(t, err)
		require.Contains(t, metrics, "lockfs_")
	}
	version := c.Nodes[0].Host.MustRun(t, c.Program, "version")
	require.NotEmpty(t, strings.TrimSpace(version))
}

// healthOf is "ok", or what is wrong with the node.
func healthOf(t testing.TB, n *testcluster.Node) string {
	t.Helper()
	answer, err := n.Get("/healthz")
	require.NoError(t, err)
	if strings.HasPrefix(answer, "200 ") {
		return "ok"
	}
	require.True(t, strings.HasPrefix(answer, "503 "), answer)
	reason := strings.TrimSpace(strings.TrimPrefix(answer, "503"))
	require.NotEmpty(t, reason, "the reason")
	return reason
}

// TestNoQuorum leaves one node of three alone. Calls fail after --op-timeout, nothing
// of them remains, and the mount is usable again when it is not alone any more.
func TestNoQuorum(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3, "--op-timeout", "5s")
	alone := c.Leader()
	others := c.Others(alone)
	alone.Host.MustRun(t, "sh", "-c", "echo held > "+c.Path("lock"))
	for _, n := range others {
		n.Kill()
	}
	for _, command := range []string{
		"mkdir " + c.Path("no-quorum"),
		"set -C; echo lost > " + c.Path("no-quorum"),
		"rm " + c.Path("lock"),
		"cat " + c.Path("lock"),
		"ls " + c.Mount,
	} {
		_, err := alone.Host.Run("sh", "-c", command)
		require.ErrorContains(t, err, "Connection timed out", command)
	}
	hosts.Eventually(t, "the node alone is not healthy", func() (string, bool) {
		health := healthOf(t, alone)
		return health, health != "ok"
	})
	others[0].Start(t)
	hosts.Eventually(t, "the mount is usable again", func() (string, bool) {
		_, err := alone.Host.Run("mkdir", c.Path("again"))
		return fmt.Sprint(err), err == nil
	})
	present := testcluster.ListDir(t, alone, c.Mount)
	require.NotContains(t, present, "no-quorum", "a creation that failed leaves nothing behind")
	require.Contains(t, present, "again")
	others[1].Start(t)
	c.RequireSameState(t)
}

// TestFrozenLeader stops the leader's process: the others go on without it, and it
// takes up its work as a follower. What was waiting in its mount is not answered
// from before.
func TestFrozenLeader(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	frozen := c.Leader()
	survivor := c.Others(frozen)[0]
	survivor.Host.MustRun(t, "sh", "-c", "echo before > "+c.Path("lock"))
	frozen.Server.Freeze()
	reader := frozen.Host.Start("cat", c.Path("lock"))
	taker := frozen.Host.Start("mkdir", c.Path("directory"))
	survivor.Host.MustRun(t, "sh", "-c", "echo after > "+c.Path("lock"))
	survivor.Host.MustRun(t, "mkdir", c.Path("directory"))
	frozen.Server.Thaw()
	require.NoError(t, reader.Wait())
	require.Equal(t, "after\n", reader.Stdout())
	require.Error(t, taker.Wait())
	require.Contains(t, taker.Log(), "File exists")
	c.RequireSameState(t)
}
