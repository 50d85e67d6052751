package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// A cluster is some nodes of lockfs, each on a host of its own with the namespace
// mounted at the same path.
type cluster struct {
	t       testing.TB
	net     *hosts.Net
	program string
	mount   string
	flags   []string // of every server
	nodes   []*node
	started []*hosts.Process // all servers ever started
}

// startCluster starts n nodes, named a, b, c and so on, and waits until all can be used.
func startCluster(t testing.TB, n int, flags ...string) *cluster {
	t.Helper()
	c := newCluster(t, flags...)
	for range n {
		c.add(t).start(t)
	}
	return c
}

// newCluster makes a cluster without nodes.
func newCluster(t testing.TB, flags ...string) *cluster {
	t.Helper()
	program := Program(t)
	net := hosts.New(t)
	c := &cluster{t: t, net: net, program: program, mount: filepath.Join(net.Dir(), "locks"), flags: flags}
	require.NoError(t, os.Mkdir(c.mount, 0o755))
	t.Cleanup(func() {
		for _, server := range c.started {
			for _, bad := range []string{"panic: ", "fatal error: ", "DATA RACE"} {
				if strings.Contains(server.Log(), bad) {
					t.Errorf("%s wrote %q", server, bad)
				}
			}
		}
	})
	return c
}

// add makes a node and its host; the first one begins the cluster. It is not started.
func (c *cluster) add(t testing.TB) *node {
	t.Helper()
	name := string(rune('a' + len(c.nodes)))
	n := &node{
		cluster: c, name: name, host: c.net.Host(name),
		data: filepath.Join(c.net.Dir(), name+".data"),
	}
	c.nodes = append(c.nodes, n)
	prepareMountPoint(t, n.host, c.mount)
	return n
}

// prepareMountPoint makes sure that nothing can be created in dir while nothing is
// mounted there: a lock made below a mount point excludes nobody.
func prepareMountPoint(t testing.TB, h *hosts.Host, dir string) {
	t.Helper()
	h.MustRun(t, "mount", "-t", "tmpfs", "-o", "ro,size=4k", "nothing-mounted", dir)
}

func (c *cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.mount}, elements...)...)
}

// leader waits until all running nodes agree on a leader that runs.
func (c *cluster) leader() *node {
	c.t.Helper()
	var leader *node
	hosts.Eventually(c.t, "a leader that all running nodes know", func() (string, bool) {
		leader = nil
		var seen []string
		agreed := true
		for _, n := range c.nodes {
			if n.server == nil {
				continue
			}
			status, err := n.status()
			seen = append(seen, fmt.Sprintf("on %s: leader %q, error %v", n.name, status.Leader, err))
			if err != nil || status.Leader == "" || leader != nil && leader.name != status.Leader {
				agreed = false
				continue
			}
			for _, other := range c.nodes {
				if other.name == status.Leader && other.server != nil {
					leader = other
				}
			}
		}
		return strings.Join(seen, "; "), agreed && leader != nil
	})
	return leader
}

// others is all nodes but some.
func (c *cluster) others(than ...*node) []*node {
	var others []*node
next:
	for _, n := range c.nodes {
		for _, excluded := range than {
			if n == excluded {
				continue next
			}
		}
		others = append(others, n)
	}
	return others
}

// hosts is where the namespace is mounted by servers.
func (c *cluster) hosts() []*hosts.Host {
	var all []*hosts.Host
	for _, n := range c.nodes {
		all = append(all, n.host)
	}
	return all
}

// requireService requires that exclusive creation works on a node.
func (c *cluster) requireService(t testing.TB, n *node) {
	t.Helper()
	n.host.MustRun(t, "mkdir", c.path("probe"))
	n.host.MustRun(t, "rmdir", c.path("probe"))
}

// startInMemory starts a node whose data is in memory: what is asked here is not how it is kept, and every
// call is a commit.
func startInMemory(t testing.TB, flags ...string) (*cluster, *hosts.Host) {
	t.Helper()
	c := newCluster(t, flags...)
	n := c.add(t)
	require.NoError(t, os.Mkdir(n.data, 0o700))
	n.host.MustRun(t, "mount", "-t", "tmpfs", "data", n.data)
	n.start(t)
	return c, n.host
}

// localDir makes a directory of a local file system, by a script that gets its path.
func localDir(t testing.TB, c *cluster, name string, host *hosts.Host, script string) string {
	t.Helper()
	dir := filepath.Join(c.net.Dir(), name)
	require.NoError(t, os.Mkdir(dir, 0o755))
	host.MustRun(t, "sh", "-ec", script, "sh", dir)
	return dir
}
