package testcluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// ShortTerm shortens the TTL of sessions, for tests that wait for their end.
var ShortTerm = []string{"--session-term", "2s"}

// AddClient adds a host without a server.
func (c *Cluster) AddClient(t testing.TB, name string) *hosts.Host {
	t.Helper()
	h := c.Net.Host(name)
	prepareMountPoint(t, h, c.Mount)
	// A process finds the session of its predecessor in files there.
	h.MustRun(t, "mount", "-t", "tmpfs", "session-files", "/run")
	return h
}

// Servers returns the addresses of all nodes.
func (c *Cluster) Servers() string {
	var addresses []string
	for _, n := range c.Nodes {
		addresses = append(addresses, n.Addr())
	}
	return strings.Join(addresses, ",")
}

// MountOn mounts without a server, and waits until the mount is ready.
func (c *Cluster) MountOn(t testing.TB, h *hosts.Host, servers string, flags ...string) *hosts.Process {
	t.Helper()
	args := append([]string{"mount", c.Mount}, c.MountFlags(t, named(h.Name(), flags), servers)...)
	p := h.Start(c.Program, append(args, flags...)...)
	require.NoError(t, p.WaitOutput("lockfs: ready at "+c.Mount))
	return p
}

// AwaitDeadMount waits for the error of a mount without a daemon and guard process.
func (c *Cluster) AwaitDeadMount(t testing.TB, h *hosts.Host) {
	t.Helper()
	hosts.Eventually(t, "a dead mount", func() (string, bool) {
		_, err := h.Run("ls", c.Mount)
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "Transport endpoint is not connected")
	})
}

// RequireLocking acquires a lock on one host, sees it held on the other, and releases it.
func RequireLocking(t testing.TB, c *Cluster, taker, other *hosts.Host) {
	t.Helper()
	lock := c.Path("lock")
	taker.MustRun(t, "sh", "-c", "set -C; echo held > "+lock)
	require.Equal(t, "held\n", other.MustRun(t, "cat", lock))
	_, err := other.Run("sh", "-c", "set -C; echo stolen > "+lock)
	require.Error(t, err, "taken twice")
	other.MustRun(t, "rm", lock)
}
