package testcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// A Cluster is a set of lockfs nodes, each on a host of its own. All hosts have the same mount point.
type Cluster struct {
	t       testing.TB
	Net     *hosts.Net
	Program string
	Mount   string
	Flags   []string // of every server
	Nodes   []*Node
	Started []*hosts.Process // all servers ever started
	Secure  bool             // with certificates; set it before the first start

	tokens      map[string]string // by role
	initialized bool              // the first server has started
}

// StartCluster starts n nodes, named a, b, c and so on, and waits until all are ready.
func StartCluster(t testing.TB, n int, flags ...string) *Cluster {
	t.Helper()
	return NewCluster(t, flags...).startAll(t, n)
}

func (c *Cluster) startAll(t testing.TB, n int) *Cluster {
	t.Helper()
	for range n {
		c.Add(t).Start(t)
	}
	return c
}

// NewCluster makes a cluster without nodes.
func NewCluster(t testing.TB, flags ...string) *Cluster {
	t.Helper()
	program := Program(t)
	net := hosts.New(t)
	c := &Cluster{
		t: t, Net: net, Program: program, Mount: filepath.Join(net.Dir(), "locks"), Flags: append(leaseFlags(), flags...),
		Secure: os.Getenv(SecureVariable) == "1", tokens: make(map[string]string),
	}
	require.NoError(t, os.Mkdir(c.Mount, 0o755))
	t.Cleanup(func() {
		for _, server := range c.Started {
			for _, bad := range []string{"panic: ", "fatal error: ", "DATA RACE"} {
				if strings.Contains(server.Log(), bad) {
					t.Errorf("%s wrote %q", server, bad)
				}
			}
		}
	})
	return c
}

// Add creates a node and its host without starting it; the first one begins the cluster.
func (c *Cluster) Add(t testing.TB) *Node {
	t.Helper()
	name := string(rune('a' + len(c.Nodes)))
	n := &Node{
		cluster: c, Name: name, Host: c.Net.Host(name),
		Data: filepath.Join(c.Net.Dir(), name+".data"),
	}
	c.Nodes = append(c.Nodes, n)
	prepareMountPoint(t, n.Host, c.Mount)
	return n
}

// prepareMountPoint makes an unmounted dir read-only: a lock below a bare mount point excludes no other host.
func prepareMountPoint(t testing.TB, h *hosts.Host, dir string) {
	t.Helper()
	h.MustRun(t, "mount", "-t", "tmpfs", "-o", "ro,size=4k", "nothing-mounted", dir)
}

// Path returns the path of a name below the mount point.
func (c *Cluster) Path(elements ...string) string {
	return filepath.Join(append([]string{c.Mount}, elements...)...)
}

// Leader waits until all running nodes agree on a running leader.
func (c *Cluster) Leader() *Node {
	c.t.Helper()
	var leader *Node
	hosts.Eventually(c.t, "a leader that all running nodes know", func() (string, bool) {
		leader = nil
		var seen []string
		agreed := true
		for _, n := range c.Nodes {
			if n.Server == nil {
				continue
			}
			status, err := n.Status()
			seen = append(seen, fmt.Sprintf("on %s: leader %q, error %v", n.Name, status.Leader, err))
			if err != nil || status.Leader == "" || leader != nil && leader.Name != status.Leader {
				agreed = false
				continue
			}
			for _, other := range c.Nodes {
				if other.Name == status.Leader && other.Server != nil {
					leader = other
				}
			}
		}
		return strings.Join(seen, "; "), agreed && leader != nil
	})
	return leader
}

// Others returns the other nodes.
func (c *Cluster) Others(than ...*Node) []*Node {
	var others []*Node
next:
	for _, n := range c.Nodes {
		for _, excluded := range than {
			if n == excluded {
				continue next
			}
		}
		others = append(others, n)
	}
	return others
}

// Hosts returns the hosts of servers.
func (c *Cluster) Hosts() []*hosts.Host {
	var all []*hosts.Host
	for _, n := range c.Nodes {
		all = append(all, n.Host)
	}
	return all
}

// RequireService requires a successful exclusive creation on a node.
func (c *Cluster) RequireService(t testing.TB, n *Node) {
	t.Helper()
	n.Host.MustRun(t, "mkdir", c.Path("probe.lock"))
	n.Host.MustRun(t, "rmdir", c.Path("probe.lock"))
}

// StartInMemory starts a node with its data in memory, for tests with many commits that do not depend on the
// disk.
func StartInMemory(t testing.TB, flags ...string) (*Cluster, *hosts.Host) {
	t.Helper()
	c := NewCluster(t, flags...)
	n := c.Add(t)
	require.NoError(t, os.Mkdir(n.Data, 0o700))
	n.Host.MustRun(t, "mount", "-t", "tmpfs", "data", n.Data)
	n.Start(t)
	return c, n.Host
}

// LocalDir creates a directory of a local file system by a script with its path as argument.
func LocalDir(t testing.TB, c *Cluster, name string, host *hosts.Host, script string) string {
	t.Helper()
	dir := filepath.Join(c.Net.Dir(), name)
	require.NoError(t, os.Mkdir(dir, 0o755))
	host.MustRun(t, "sh", "-ec", script, "sh", dir)
	return dir
}
