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

// SecureVariable is 1 for clusters with certificates, in tests without a choice.
const SecureVariable = "LOCKFS_TEST_SECURE"

// StartSecureCluster is StartCluster with certificates: hosts need a token to join.
func StartSecureCluster(t testing.TB, n int, flags ...string) *Cluster {
	t.Helper()
	c := NewCluster(t, flags...)
	c.Secure = true
	return c.startAll(t, n)
}

// StartInsecureCluster is StartCluster without certificates: any host on the network has all permissions.
func StartInsecureCluster(t testing.TB, n int, flags ...string) *Cluster {
	t.Helper()
	c := NewCluster(t, flags...)
	c.Secure = false
	return c.startAll(t, n)
}

// JoinToken returns a token for all hosts of a role, "server" or "client". It names the running servers.
func (c *Cluster) JoinToken(t testing.TB, role string) string {
	t.Helper()
	if c.tokens[role] == "" {
		c.tokens[role] = c.NewJoinToken(t, "--role", role, "--uses", "1000", "--ttl", "24h")
	}
	return c.tokens[role]
}

// NewJoinToken creates a token with some flags, on the first running server.
func (c *Cluster) NewJoinToken(t testing.TB, flags ...string) string {
	t.Helper()
	running := slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.Server != nil })
	require.NotEqual(t, -1, running, "no server runs that could make a token")
	out, err := c.Nodes[running].Lockfs(append([]string{"token", "create"}, flags...)...)
	require.NoError(t, err)
	return strings.TrimSpace(out)
}

// IdentityDir returns the identity directory of a host without a server.
func (c *Cluster) IdentityDir(host string) string {
	return filepath.Join(c.Net.Dir(), host+".identity")
}

// MountFlags returns the flags of lockfs mount for a host and some servers, with a join token.
func (c *Cluster) MountFlags(t testing.TB, host, servers string) []string {
	t.Helper()
	var flags []string
	if servers != "" { // otherwise the identity has them
		flags = append(flags, "--servers", servers)
	}
	if !c.Secure {
		return append(flags, "--insecure")
	}
	if i := slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.Name == host }); i >= 0 {
		return append(flags, "--identity", c.Nodes[i].Identity()) // the host has an identity
	}
	flags = append(flags, "--identity", c.IdentityDir(host))
	if _, err := os.Stat(c.IdentityDir(host)); err == nil {
		return flags
	}
	return append(flags, "--token", c.JoinToken(t, "client"))
}

// MountOption returns the mount(8) option in place of MountFlags, for a host that has joined.
func (c *Cluster) MountOption(h *hosts.Host) string {
	if !c.Secure {
		return "insecure"
	}
	return "identity=" + c.IdentityDir(h.Name())
}

// named returns the host's name from the flags, or its own.
func named(host string, flags []string) string {
	if i := slices.Index(flags, "--name"); i >= 0 && i+1 < len(flags) {
		return flags[i+1]
	}
	return host
}

// Identity returns the server's identity directory.
func (n *Node) Identity() string { return filepath.Join(n.Data, "identity") }

// Asked returns the flags of a command that connects to this server with its identity.
func (n *Node) Asked() []string {
	if n.cluster.Secure {
		return []string{"--servers", n.Addr(), "--identity", n.Identity()}
	}
	return []string{"--servers", n.Addr(), "--insecure"}
}

// entry returns the flags by which the server starts or joins.
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
	// The token names the host: it may have lost its data, and so the key that proves its name.
	return []string{"--token", n.cluster.NewJoinToken(n.cluster.t, "--role", "server", "--host", n.Name)}
}
