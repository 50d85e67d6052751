package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	program := program(t)
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

// A node is a server of lockfs with its host.
type node struct {
	cluster *cluster
	name    string
	host    *hosts.Host
	data    string
	server  *hosts.Process // nil while it does not run

	environment []string // for the server, beyond that of the test
}

func (n *node) raftAddr() string { return n.host.Addr() + ":7420" }
func (n *node) apiAddr() string  { return n.host.Addr() + ":7421" }
func (n *node) httpAddr() string { return n.host.Addr() + ":7422" }

// launch starts the server and does not wait for it.
func (n *node) launch() {
	args := []string{
		"server", "--name", n.name, "--data", n.data, "--mount", n.cluster.mount,
		"--raft-addr", n.raftAddr(), "--api-addr", n.apiAddr(), "--http-addr", n.httpAddr(),
	}
	if n == n.cluster.nodes[0] {
		args = append(args, "--bootstrap")
	} else {
		args = append(args, "--join", n.cluster.nodes[0].apiAddr())
	}
	n.server = n.host.Start("env", slices.Concat(n.environment, []string{n.cluster.program}, args, n.cluster.flags)...)
	n.cluster.started = append(n.cluster.started, n.server)
}

func (n *node) awaitReady(t testing.TB) {
	t.Helper()
	require.NoError(t, n.server.WaitOutput("lockfs: "+n.name+" ready\n"))
}

// start starts the server and waits until it can be used.
func (n *node) start(t testing.TB) {
	t.Helper()
	n.launch()
	n.awaitReady(t)
}

// kill ends the server with SIGKILL.
func (n *node) kill() {
	n.server.Kill()
	n.server = nil
}

// stop ends the server with SIGTERM, which it has to take well.
func (n *node) stop(t testing.TB) {
	t.Helper()
	require.NoError(t, n.server.Stop(), "%s", n.server.Log())
	n.server = nil
}

// mounts counts the mounts of lockfs, alive or not, that a host has at dir.
func mounts(t testing.TB, h *hosts.Host, dir string) int {
	t.Helper()
	return strings.Count(h.MustRun(t, "cat", "/proc/mounts"), " "+dir+" fuse.lockfs ")
}

// lockfs runs the program on the node's host, against the node.
func (n *node) lockfs(args ...string) (string, error) {
	return n.host.Run(n.cluster.program, append(args, "--servers", n.apiAddr())...)
}

// status is what `lockfs status --json` says. Only what tests use is here.
type status struct {
	Leader string       `json:"leader"`
	Nodes  []nodeStatus `json:"nodes"`
}

type nodeStatus struct {
	Name         string `json:"name"`
	State        string `json:"state"`
	Term         uint64 `json:"term"`
	CommitIndex  uint64 `json:"commit_index"`
	AppliedIndex uint64 `json:"applied_index"`
	StateIndex   uint64 `json:"state_index"`
	StateHash    string `json:"state_hash"`
	Error        string `json:"error"`
}

func (n *node) status() (status, error) {
	var s status
	text, err := n.lockfs("status", "--json")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("%w in %s", err, text)
	}
	return s, nil
}

// requireSameState waits until all nodes have applied the same and requires that
// they came to the same state.
func (c *cluster) requireSameState(t testing.TB) {
	t.Helper()
	hosts.Eventually(t, "all nodes at one state index with one hash", func() (string, bool) {
		s, err := c.nodes[0].status()
		if err != nil {
			return err.Error(), false
		}
		same := len(s.Nodes) == len(c.nodes)
		for _, n := range s.Nodes {
			if n.StateIndex != s.Nodes[0].StateIndex || n.StateHash == "" {
				same = false
			}
		}
		if same {
			for _, n := range s.Nodes {
				require.Equal(t, s.Nodes[0].StateHash, n.StateHash, "hash of %s and %s at index %d", s.Nodes[0].Name, n.Name, n.StateIndex)
			}
		}
		return fmt.Sprintf("%+v", s.Nodes), same
	})
}
