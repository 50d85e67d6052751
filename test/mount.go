package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// shortTerm makes sessions end soon, for tests that wait for it.
var shortTerm = []string{"--session-term", "2s"}

// client adds a host that is not a voter.
func (c *cluster) client(t testing.TB, name string) *hosts.Host {
	t.Helper()
	h := c.net.Host(name)
	prepareMountPoint(t, h, c.mount)
	// For the files by which a process finds the session of the one before.
	h.MustRun(t, "mount", "-t", "tmpfs", "session-files", "/run")
	return h
}

// servers is the API addresses of all nodes.
func (c *cluster) servers() string {
	var addresses []string
	for _, n := range c.nodes {
		addresses = append(addresses, n.apiAddr())
	}
	return strings.Join(addresses, ",")
}

// mountOn mounts without a voter, and waits until the mount can be used.
func (c *cluster) mountOn(t testing.TB, h *hosts.Host, servers string, flags ...string) *hosts.Process {
	t.Helper()
	args := append([]string{"mount", "--servers", servers, c.mount}, flags...)
	p := h.Start(c.program, args...)
	require.NoError(t, p.WaitOutput("lockfs: ready at "+c.mount))
	return p
}

// awaitDeadMount waits for what a mount says whose process is gone, and the process's guard too.
func (c *cluster) awaitDeadMount(t testing.TB, h *hosts.Host) {
	t.Helper()
	hosts.Eventually(t, "a dead mount", func() (string, bool) {
		_, err := h.Run("ls", c.mount)
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "Transport endpoint is not connected")
	})
}

// requireLocking takes a lock on one host, sees it held on the other, and drops it.
func requireLocking(t testing.TB, c *cluster, taker, other *hosts.Host) {
	t.Helper()
	lock := c.path("lock")
	taker.MustRun(t, "sh", "-c", "set -C; echo held > "+lock)
	require.Equal(t, "held\n", other.MustRun(t, "cat", lock))
	_, err := other.Run("sh", "-c", "set -C; echo stolen > "+lock)
	require.Error(t, err, "taken twice")
	other.MustRun(t, "rm", lock)
}
