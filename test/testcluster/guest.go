package testcluster

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// A Guest is a host that mounts without a server. Its daemon can be killed.
type Guest struct {
	Cluster *Cluster
	Host    *hosts.Host
	flags   []string
	Daemon  *hosts.Process // nil while it does not run

	Environment []string // for the daemon, beyond that of the test
	Other       string   // program to start in place of the cluster's
	clock
}

// AddGuest creates the host without starting the daemon.
func (c *Cluster) AddGuest(t testing.TB, name string, flags ...string) *Guest {
	t.Helper()
	return &Guest{Cluster: c, Host: c.AddClient(t, name), flags: flags}
}

// Start starts the daemon and waits until the mount is ready.
func (g *Guest) Start(t testing.TB) {
	t.Helper()
	g.Launch(t)
	require.NoError(t, g.Daemon.WaitOutput("lockfs: ready at "))
}

// Launch starts the daemon without waiting for it.
func (g *Guest) Launch(t testing.TB) {
	t.Helper()
	args := append([]string{"mount", g.Cluster.Mount}, g.Cluster.MountFlags(t, named(g.Host.Name(), g.flags), g.Cluster.Servers())...)
	g.Daemon = g.Host.Start("env", slices.Concat(g.Environment, g.command(cmp.Or(g.Other, g.Cluster.Program)), args, g.flags)...)
}

// HostPID returns the daemon's pid in the host's namespace.
func (g *Guest) HostPID(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.Daemon.Pid()))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	pids := strings.Fields(line)
	return pids[len(pids)-1]
}

// Kill ends the daemon with SIGKILL.
func (g *Guest) Kill() {
	g.Daemon.Kill()
	g.Daemon = nil
}
