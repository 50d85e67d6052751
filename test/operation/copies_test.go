package operation

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// startCopy starts a server on a copy of another one's data directory, on a host of its own.
func startCopy(t testing.TB, c *testcluster.Cluster, of *testcluster.Node) *hosts.Process {
	t.Helper()
	data := filepath.Join(c.Net.Dir(), "copy.data")
	h := c.AddClient(t, "copy")
	h.MustRun(t, "cp", "-a", of.Data, data)
	args := []string{"server", "--name", of.Name, "--data", data, "--addr", h.Addr() + ":7420", "--http-addr", "127.0.0.1:7422"}
	if !c.Secure {
		args = append(args, "--insecure")
	}
	server := h.Start(c.Program, append(args, c.Flags...)...)
	c.Started = append(c.Started, server)
	return server
}

// follower is a server that does not lead.
func follower(c *testcluster.Cluster) *testcluster.Node { return c.Others(c.Leader())[0] }

// TestCopyOfARunningServerIsRefused starts one with an address of its own. It ends, and an alarm names both hosts.
func TestCopyOfARunningServerIsRefused(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	n := follower(c)
	n.Host.MustRun(t, "sh", "-c", "echo held > "+c.Path("lock"))
	server := startCopy(t, c, n)
	require.Error(t, server.Wait())
	names := []string{"two processes use the identity of the server " + n.Name, n.Addr() + " on host " + n.Host.Name(), "on host copy"}
	hosts.Eventually(t, "the alarm", func() (string, bool) {
		alarms, err := n.Lockfs("alarm", "list")
		for _, name := range append(names, "two_processes") {
			if err == nil && !strings.Contains(alarms, name) {
				return alarms, false
			}
		}
		return alarms, err == nil
	})
	require.Contains(t, server.Log(), names[0])
	c.RequireService(t, n)
	require.Equal(t, "held\n", n.Host.MustRun(t, "cat", c.Path("lock")))
	n.Kill() // it is still followed, and starts again at once
	n.Start(t)
	c.RequireService(t, n)
	c.RequireSameState(t)
}

// TestResumedServerWhoseCopyIsFollowedEnds pauses a whole machine, as a hypervisor does, and starts a copy of its server elsewhere.
func TestResumedServerWhoseCopyIsFollowedEnds(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	n := follower(c)
	n.Host.MustRun(t, "sh", "-c", "echo first > "+c.Path("lock"))
	n.Host.Freeze()
	server := startCopy(t, c, n)
	require.NoError(t, server.WaitOutput("lockfs: "+n.Name+" ready\n"))
	other := c.Others(n)[0]
	other.Host.MustRun(t, "sh", "-c", "rm "+c.Path("lock")+"; set -C; echo second > "+c.Path("lock"))

	n.Host.Thaw()
	seen, err := n.Host.Run("cat", c.Path("lock"))
	require.True(t, err != nil || seen == "second\n", "it read %q", seen)
	require.Error(t, n.Server.Wait())
	require.Contains(t, n.Server.Log(), "the cluster follows another process as this server")
	n.Server = nil
	members, err := other.Lockfs("member", "list")
	require.NoError(t, err)
	require.Contains(t, members, server.Host().Addr()+":7420")
	require.NotContains(t, members, n.Addr())
	c.RequireService(t, other)
}
