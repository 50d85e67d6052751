package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// membersOf is what `lockfs member list --json` names, sorted.
func membersOf(t testing.TB, n *suite.Node) []string {
	t.Helper()
	text, err := n.Lockfs("member", "list", "--json")
	require.NoError(t, err)
	var list []struct {
		Name string `json:"name"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &list), text)
	var names []string
	for _, member := range list {
		names = append(names, member.Name)
	}
	slices.Sort(names)
	return names
}

// TestMembersComeAndGo adds a node to a cluster that has been at work, removes it,
// and lets it come back with an empty data directory.
func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 2)
	a, b := c.Nodes[0], c.Nodes[1]
	a.Host.MustRun(t, "sh", "-c", "echo held > "+c.Path("lock"))
	require.Equal(t, []string{"a", "b"}, membersOf(t, b))

	third := c.Add(t)
	third.Start(t)
	require.Equal(t, "held\n", third.Host.MustRun(t, "cat", c.Path("lock")))
	require.Equal(t, []string{"a", "b", "c"}, membersOf(t, third))
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
	require.Equal(t, []string{"a", "b"}, membersOf(t, a))
	third.Kill()
	c.RequireService(t, b)

	third.Launch()
	require.Error(t, third.Server.Wait())
	require.Contains(t, third.Server.Log(), "this node was removed from the cluster")
	require.NoError(t, os.RemoveAll(third.Data))
	third.Start(t)
	require.Equal(t, []string{"a", "b", "c"}, membersOf(t, b))
	require.Equal(t, "held\n", third.Host.MustRun(t, "cat", c.Path("lock")))
	c.RequireSameState(t)
}

// TestAStrayServerLeavesTheClusterAlone starts a second server with an address at which nobody else reaches it. It is told so,
// nothing has changed for the first one, and once its address is right it may join.
func TestAStrayServerLeavesTheClusterAlone(t *testing.T) {
	t.Parallel()
	c := suite.StartInsecureCluster(t, 1)
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
	require.Equal(t, []string{"a"}, membersOf(t, a))
	c.RequireService(t, a)
	require.Error(t, stray.Wait())
	require.Contains(t, stray.Log(), "the leader a cannot reach b (its address 10.77.99.99:7420 does not answer")
	a.Kill()
	a.Start(t)
	require.Equal(t, "held\n", a.Host.MustRun(t, "cat", c.Path("lock")))

	b.Start(t)
	require.Equal(t, []string{"a", "b"}, membersOf(t, a))
	require.Equal(t, "held\n", b.Host.MustRun(t, "cat", c.Path("lock")))
	c.RequireSameState(t)
}

// TestStatusForPeople looks at the status without --json.
func TestStatusForPeople(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 3)
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
