package test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// A guest is a host that mounts without a voter, and can lose its daemon.
type guest struct {
	cluster *cluster
	host    *hosts.Host
	flags   []string
	daemon  *hosts.Process // nil while it does not run

	environment []string // for the daemon, beyond that of the test
}

// addGuest makes the host. The daemon is not started.
func (c *cluster) addGuest(t testing.TB, name string, flags ...string) *guest {
	t.Helper()
	return &guest{cluster: c, host: c.client(t, name), flags: flags}
}

func (g *guest) start(t testing.TB) {
	t.Helper()
	command := []string{g.cluster.program, "mount", "--servers", g.cluster.servers(), g.cluster.mount}
	g.daemon = g.host.Start("env", slices.Concat(g.environment, command, g.flags)...)
	require.NoError(t, g.daemon.WaitOutput("lockfs: ready at "))
}

// hostPid is the daemon's process id as the host sees it.
func (g *guest) hostPid(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.daemon.Pid()))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	pids := strings.Fields(line)
	return pids[len(pids)-1]
}

// kill ends the daemon with SIGKILL.
func (g *guest) kill() {
	g.daemon.Kill()
	g.daemon = nil
}
