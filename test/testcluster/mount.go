package testcluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// ShortTerm makes sessions end soon, for tests that wait for it.
var ShortTerm = []string{"--session-term", "2s"}

// AddClient adds a host that is not a voter.
func (c *Cluster) AddClient(t testing.TB, name string) *hosts.Host {
	t.Helper()
	h := c.Net.Host(name)
	prepareMountPoint(t, h, c.Mount)
	// For the files by which a process finds the session of the one before.
	h.MustRun(t, "mount", "-t", "tmpfs", "session-files", "/run")
	return h
}

// Servers is the addresses of all nodes.
func (c *Cluster) Servers() string {
	var addresses []string
	for _, n := range c.Nodes {
		addresses = append(addresses, n.Addr())
	}
	return strings.Join(addresses, ",")
}

// MountOn mounts without a voter, and waits until the mount can be used.
func (c *Cluster) MountOn(t testing.TB, h *hosts.Host, servers string, flags ...string) *hosts.Process {
	t.Helper()
	args := append([]string{"mount", c.Mount}, c.MountFlags(t, named(h.Name(), flags), servers)...)
	p := h.Start(c.Program, append(args, flags...)...)
	require.NoError(t, p.WaitOutput("lockfs: ready at "+c.Mount))
	return p
}

// AwaitDeadMount waits for what a mount says whose process is gone, and the process's guard too.
func (c *Cluster) AwaitDeadMount(t testing.TB, h *hosts.Host) {
	t.Helper()
	hosts.Eventually(t, "a dead mount", func() (string, bool) {
		_, err := h.Run("ls", c.Mount)
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "Transport endpoint is not connected")
	})
}

// RequireLocking takes a lock on one host, sees it held on the other, and drops it.
func RequireLocking(t testing.TB, c *Cluster, taker, other *hosts.Host) {
	t.Helper()
	lock := c.Path("lock")
	taker.MustRun(t, "sh", "-c", "set -C; echo held > "+lock)
	require.Equal(t, "held\n", other.MustRun(t, "cat", lock))
	_, err := other.Run("sh", "-c", "set -C; echo stolen > "+lock)
	require.Error(t, err, "taken twice")
	other.MustRun(t, "rm", lock)
}
