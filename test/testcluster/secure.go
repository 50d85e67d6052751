package testcluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// SecureVariable is 1 for clusters with certificates where tests do not say which they want.
const SecureVariable = "LOCKFS_TEST_SECURE"

// StartSecureCluster is StartCluster with certificates: only who has come in with a token is let in.
func StartSecureCluster(t testing.TB, n int, flags ...string) *Cluster {
	t.Helper()
	c := NewCluster(t, flags...)
	c.Secure = true
	return c.startAll(t, n)
}

// StartInsecureCluster is StartCluster without certificates: whoever reaches the port may do anything.
func StartInsecureCluster(t testing.TB, n int, flags ...string) *Cluster {
	t.Helper()
	c := NewCluster(t, flags...)
	c.Secure = false
	return c.startAll(t, n)
}

// JoinToken is a token for all hosts of a role, "server" or "client". Servers that run name themselves in it.
func (c *Cluster) JoinToken(t testing.TB, role string) string {
	t.Helper()
	if c.tokens[role] == "" {
		c.tokens[role] = c.NewJoinToken(t, "--role", role, "--uses", "1000", "--ttl", "24h")
	}
	return c.tokens[role]
}

// NewJoinToken makes a token that some flags describe, by the first server that runs.
func (c *Cluster) NewJoinToken(t testing.TB, flags ...string) string {
	t.Helper()
	running := slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.Server != nil })
	require.NotEqual(t, -1, running, "no server runs that could make a token")
	out, err := c.Nodes[running].Lockfs(append([]string{"token", "create"}, flags...)...)
	require.NoError(t, err)
	return strings.TrimSpace(out)
}

// IdentityDir is where a host of that name has its identity if it is no server.
func (c *Cluster) IdentityDir(host string) string {
	return filepath.Join(c.Net.Dir(), host+".identity")
}

// MountFlags are those of lockfs mount with which a host of that name reaches some servers, and may come in.
func (c *Cluster) MountFlags(t testing.TB, host, servers string) []string {
	t.Helper()
	var flags []string
	if servers != "" { // else the identity has them
		flags = append(flags, "--servers", servers)
	}
	if !c.Secure {
		return append(flags, "--insecure")
	}
	if i := slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.Name == host }); i >= 0 {
		return append(flags, "--identity", c.Nodes[i].Identity()) // a host has one
	}
	flags = append(flags, "--identity", c.IdentityDir(host))
	if _, err := os.Stat(c.IdentityDir(host)); err == nil {
		return flags
	}
	return append(flags, "--token", c.JoinToken(t, "client"))
}

// MountOption is what mount(8) takes in place of MountFlags, on a host that has come in.
func (c *Cluster) MountOption(h *hosts.Host) string {
	if !c.Secure {
		return "insecure"
	}
	return "identity=" + c.IdentityDir(h.Name())
}

// named is the name of a host that some flags give it, or else its own.
func named(host string, flags []string) string {
	if i := slices.Index(flags, "--name"); i >= 0 && i+1 < len(flags) {
		return flags[i+1]
	}
	return host
}

// Identity is the server's identity directory.
func (n *Node) Identity() string { return filepath.Join(n.Data, "identity") }

// Asked are the flags of a command that asks this server, with its own right to.
func (n *Node) Asked() []string {
	if n.cluster.Secure {
		return []string{"--servers", n.Addr(), "--identity", n.Identity()}
	}
	return []string{"--servers", n.Addr(), "--insecure"}
}

// entry are the flags by which the server is in the cluster, or joins it.
func (n *Node) entry() []string {
	first := n.cluster.Nodes[0]
	switch {
	case !n.cluster.Secure && n == first:
		return []string{"--insecure"}
	case !n.cluster.Secure:
		return []string{"--insecure", "--join", first.Addr()}
	case n == first:
		return nil
	}
	if _, err := os.Stat(n.Identity()); err == nil {
		return nil
	}
	// With its name in it: it may have lost its data, and with them the key that it is known by.
	return []string{"--token", n.cluster.NewJoinToken(n.cluster.t, "--role", "server", "--host", n.Name)}
}
