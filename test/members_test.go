package test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// members is what `lockfs member list --json` names, sorted.
func (n *node) members(t testing.TB) []string {
	t.Helper()
	text, err := n.lockfs("member", "list", "--json")
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
	c := startCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	a.host.MustRun(t, "sh", "-c", "echo held > "+c.path("lock"))
	require.Equal(t, []string{"a", "b"}, b.members(t))

	third := c.add(t)
	third.start(t)
	require.Equal(t, "held\n", third.host.MustRun(t, "cat", c.path("lock")))
	require.Equal(t, []string{"a", "b", "c"}, third.members(t))
	text, err := a.lockfs("member", "list")
	require.NoError(t, err)
	for _, n := range c.nodes {
		require.Contains(t, text, n.apiAddr(), "for people")
	}
	require.Equal(t, 3, strings.Count(text, "voter"), text)
	c.requireSameState(t)

	// With three, one can be missing.
	b.kill()
	c.requireService(t, third)
	b.start(t)

	_, err = a.lockfs("member", "remove", "nobody")
	require.ErrorContains(t, err, "nobody", "a member that is none")
	_, err = a.lockfs("member", "remove", "c")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, a.members(t))
	third.kill()
	c.requireService(t, b)

	third.launch()
	require.Error(t, third.server.Wait())
	require.Contains(t, third.server.Log(), "this node was removed from the cluster")
	require.NoError(t, os.RemoveAll(third.data))
	third.start(t)
	require.Equal(t, []string{"a", "b", "c"}, b.members(t))
	require.Equal(t, "held\n", third.host.MustRun(t, "cat", c.path("lock")))
	c.requireSameState(t)
}

// TestAStrayServerLeavesTheClusterAlone starts a second server with an address at which nobody else reaches it. It is told so,
// nothing has changed for the first one, and once its address is right it may join.
func TestAStrayServerLeavesTheClusterAlone(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	a := c.nodes[0]
	a.host.MustRun(t, "sh", "-c", "echo held > "+c.path("lock"))
	b := c.add(t)
	stray := b.host.Start(c.program, "server", "--name", b.name, "--data", b.data, "--raft-addr", "127.0.0.1:7420",
		"--api-addr", b.apiAddr(), "--http-addr", b.httpAddr(), "--join", a.apiAddr())
	c.started = append(c.started, stray)
	hosts.Eventually(t, "the leader says that it does not reach it", func() (string, bool) {
		log := a.server.Log()
		return log, strings.Contains(log, "127.0.0.1:7420 does not answer")
	})
	require.Equal(t, []string{"a"}, a.members(t))
	c.requireService(t, a)
	require.Error(t, stray.Wait())
	require.Contains(t, stray.Log(), "the leader a cannot reach b (its raft address 127.0.0.1:7420 does not answer")
	a.kill()
	a.start(t)
	require.Equal(t, "held\n", a.host.MustRun(t, "cat", c.path("lock")))

	b.start(t)
	require.Equal(t, []string{"a", "b"}, a.members(t))
	require.Equal(t, "held\n", b.host.MustRun(t, "cat", c.path("lock")))
	c.requireSameState(t)
}

// TestStatusForPeople looks at the status without --json.
func TestStatusForPeople(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	leader := c.leader()
	for _, n := range c.nodes {
		text, err := n.lockfs("status")
		require.NoError(t, err)
		for _, other := range c.nodes {
			require.Contains(t, text, other.apiAddr())
		}
		require.Contains(t, text, "leader")
	}
	// A member that does not answer is shown all the same.
	gone := c.others(leader)[0]
	gone.kill()
	hosts.Eventually(t, "a status with all members", func() (string, bool) {
		text, err := leader.lockfs("status")
		return fmt.Sprint(text, err), err == nil && strings.Contains(text, gone.apiAddr())
	})
}
