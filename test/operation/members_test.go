package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// awaitMembers waits until `lockfs member list --json` names these, sorted, and no others. A server tells what it has heard of.
func awaitMembers(t testing.TB, lockfs func(...string) (string, error), want ...string) {
	t.Helper()
	hosts.Eventually(t, "the members", func() (string, bool) {
		text, err := lockfs("member", "list", "--json")
		require.NoError(t, err)
		var list []struct{ Name string }
		require.NoError(t, json.Unmarshal([]byte(text), &list), text)
		var names []string
		for _, member := range list {
			names = append(names, member.Name)
		}
		slices.Sort(names)
		return text, slices.Equal(want, names)
	})
}

// TestMembersComeAndGo adds a node to a cluster that has been at work, removes it,
// and lets it come back with an empty data directory.
func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0], c.Nodes[1]
	a.Host.MustRun(t, "sh", "-c", "echo held > "+c.Path("lock"))
	awaitMembers(t, b.Lockfs, "a", "b")

	third := c.Add(t)
	third.Start(t)
	require.Equal(t, "held\n", third.Host.MustRun(t, "cat", c.Path("lock")))
	awaitMembers(t, third.Lockfs, "a", "b", "c")
	text, err := a.Lockfs("member", "list")
	require.NoError(t, err)
	for _, n := range c.Nodes {
		require.Contains(t, text, n.Addr(), "for people")
	}
	require.Equal(t, 3, strings.Count(text, "voter"), text)
	c.RequireSameState(t)

	// With three, one can be missing.
	b.Kill()
	c.RequireService(t, third)
	b.Start(t)

	_, err = a.Lockfs("member", "remove", "nobody")
	require.ErrorContains(t, err, "nobody", "a member that is none")
	_, err = a.Lockfs("member", "remove", "c")
	require.NoError(t, err)
	awaitMembers(t, a.Lockfs, "a", "b")
	third.Kill()
	c.RequireService(t, b)

	third.Launch()
	require.Error(t, third.Server.Wait())
	require.Contains(t, third.Server.Log(), "this node was removed from the cluster")
	require.NoError(t, os.RemoveAll(third.Data))
	third.Start(t)
	awaitMembers(t, b.Lockfs, "a", "b", "c")
	require.Equal(t, "held\n", third.Host.MustRun(t, "cat", c.Path("lock")))
	c.RequireSameState(t)
}

// TestServersComeInAsMemberAddSays starts servers by the command line that lockfs member add prints: one that gets a vote, and one that stays
// without, also when it is started again. Neither line lets a second server in, or one of another name.
func TestServersComeInAsMemberAddSays(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 1)
	a := c.Nodes[0]
	come := func(line string, n *testcluster.Node) *hosts.Process {
		t.Helper()
		line = strings.NewReplacer("/var/lib/lockfs", n.Data, "/locks", c.Mount, "HOST:7420", n.Addr(), "lockfs server", "server").
			Replace(strings.TrimSpace(line))
		p := n.Host.Start(c.Program, append(strings.Fields(line), "--name", n.Name, "--http-addr", n.HTTPAddr())...)
		c.Started = append(c.Started, p)
		return p
	}
	added := func(n *testcluster.Node, flags ...string) string {
		t.Helper()
		line, err := a.Lockfs(append([]string{"member", "add"}, flags...)...)
		require.NoError(t, err)
		require.Regexp(t, "^lockfs server .* --token lockfs-server-\\S+( --nonvoter)?\n$", line)
		n.Server = come(line, n)
		n.AwaitReady(t)
		return line
	}
	states := func() (found []string) {
		t.Helper()
		text, err := a.Lockfs("member", "list", "--json")
		require.NoError(t, err)
		var list []struct {
			Name  string `json:"name"`
			State string `json:"state"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &list), text)
		for _, member := range list {
			found = append(found, fmt.Sprint(member.Name, " ", member.State))
		}
		slices.Sort(found)
		return found
	}
	voter, reader := c.Add(t), c.Add(t)
	line := added(voter)
	hosts.Eventually(t, "it has a vote", func() (string, bool) {
		now := states()
		return fmt.Sprint(now), slices.Equal(now, []string{"a voter", "b voter"})
	})
	added(reader, "--nonvoter", "--host", reader.Name)
	want := []string{"a voter", "b voter", "c non-voter"}
	require.Equal(t, want, states())
	testcluster.RequireLocking(t, c, reader.Host, a.Host)
	backup := filepath.Join(c.Net.Dir(), "of-the-reader")
	_, err := reader.Lockfs("backup", backup)
	require.NoError(t, err)
	require.Equal(t, reader.Name, verify(t, reader, c, backup).Node)
	reader.Stop(t)
	reader.Start(t)
	c.RequireSameState(t)
	require.Equal(t, want, states(), "without the flag too")

	another := c.Add(t)
	c.Nodes = c.Nodes[:3]
	again := come(line, another)
	require.Error(t, again.Wait())
	require.Contains(t, again.Log(), "the join token is used up")
	another.Host.MustRun(t, "rm", "-rf", another.Data)
	line, err = a.Lockfs("member", "add", "--host", "e")
	require.NoError(t, err)
	again = come(line, another)
	require.Error(t, again.Wait())
	require.Contains(t, again.Log(), `the join token is for the host "e"`)
	require.Equal(t, want, states())
	_, err = a.Lockfs("member", "promote", reader.Name)
	require.NoError(t, err)
	require.Equal(t, []string{"a voter", "b voter", "c voter"}, states())
}

// TestAStrayServerLeavesTheClusterAlone starts a second server with an address at which nobody else reaches it. It is told so,
// nothing has changed for the first one, and once its address is right it may join.
func TestAStrayServerLeavesTheClusterAlone(t *testing.T) {
	t.Parallel()
	c := testcluster.StartInsecureCluster(t, 1)
	a := c.Nodes[0]
	a.Host.MustRun(t, "sh", "-c", "echo held > "+c.Path("lock"))
	b := c.Add(t)
	stray := b.Host.Start(c.Program, "server", "--name", b.Name, "--data", b.Data, "--insecure",
		"--addr", b.Addr(), "--advertise", "10.77.99.99:7420", "--http-addr", b.HTTPAddr(), "--join", a.Addr())
	c.Started = append(c.Started, stray)
	hosts.Eventually(t, "the leader says that it does not reach it", func() (string, bool) {
		log := a.Server.Log()
		return log, strings.Contains(log, "10.77.99.99:7420 does not answer")
	})
	awaitMembers(t, a.Lockfs, "a")
	c.RequireService(t, a)
	require.Error(t, stray.Wait())
	require.Contains(t, stray.Log(), "the leader a cannot reach b (its address 10.77.99.99:7420 does not answer")
	a.Kill()
	a.Start(t)
	require.Equal(t, "held\n", a.Host.MustRun(t, "cat", c.Path("lock")))

	b.Start(t)
	awaitMembers(t, a.Lockfs, "a", "b")
	require.Equal(t, "held\n", b.Host.MustRun(t, "cat", c.Path("lock")))
	c.RequireSameState(t)
}

// TestStatusForPeople looks at the status without --json.
func TestStatusForPeople(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	leader := c.Leader()
	for _, n := range c.Nodes {
		text, err := n.Lockfs("status")
		require.NoError(t, err)
		for _, other := range c.Nodes {
			require.Contains(t, text, other.Addr())
		}
		require.Contains(t, text, "leader")
	}
	// A member that does not answer is shown all the same.
	gone := c.Others(leader)[0]
	gone.Kill()
	hosts.Eventually(t, "a status with all members", func() (string, bool) {
		text, err := leader.Lockfs("status")
		return fmt.Sprint(text, err), err == nil && strings.Contains(text, gone.Addr())
	})
}
