package testcluster

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// A Node is a lockfs server with its host.
type Node struct {
	cluster *Cluster
	Name    string
	Host    *hosts.Host
	Data    string
	Server  *hosts.Process // nil while it does not run

	Environment []string // for the server, beyond that of the test
	Flags       []string // for the server, beyond those of all
	Port        string   // except HTTP; empty: 7420
	Other       string   // program to start in place of the cluster's
	clock
}

// Addr returns the server's address for other nodes, mounts and commands.
func (n *Node) Addr() string {
	if n.Port != "" {
		return n.Host.Addr() + ":" + n.Port
	}
	return n.Host.Addr() + ":7420"
}

// HTTPAddr returns the address of health and metrics: loopback, if another one would need certificates.
func (n *Node) HTTPAddr() string {
	if n.cluster.Secure {
		return "127.0.0.1:7422"
	}
	return n.Host.Addr() + ":7422"
}

// Init creates the data directory of the first server of a cluster.
func (n *Node) Init(t testing.TB) {
	t.Helper()
	args := []string{"server", "init", "--name", n.Name, "--data", n.Data, "--addr", n.Addr()}
	if !n.cluster.Secure {
		args = append(args, "--insecure")
	}
	n.Host.MustRun(t, "env", slices.Concat(n.Environment, n.command(cmp.Or(n.Other, n.cluster.Program)), args)...)
}

// Launch starts the server without waiting for it. It creates the cluster before the first start of its first
// server.
func (n *Node) Launch() {
	if n == n.cluster.Nodes[0] && !n.cluster.initialized {
		if _, err := os.Stat(filepath.Join(n.Data, "node.json")); err != nil { // otherwise it has the data of another cluster
			n.Init(n.cluster.t)
		}
		n.cluster.initialized = true
	}
	args := []string{
		"server", "--name", n.Name, "--data", n.Data, "--mount", n.cluster.Mount,
		"--addr", n.Addr(), "--http-addr", n.HTTPAddr(),
	}
	n.Server = n.Host.Start("env", slices.Concat(
		n.Environment, n.command(cmp.Or(n.Other, n.cluster.Program)), args, n.entry(), n.cluster.Flags, n.Flags,
	)...)
	n.cluster.Started = append(n.cluster.Started, n.Server)
}

// AwaitReady waits until the server reports that it is ready.
func (n *Node) AwaitReady(t testing.TB) {
	t.Helper()
	require.NoError(t, n.Server.WaitOutput("lockfs: "+n.Name+" ready\n"))
}

// Start starts the server and waits until it is ready.
func (n *Node) Start(t testing.TB) {
	t.Helper()
	n.Launch()
	n.AwaitReady(t)
}

// Kill ends the server with SIGKILL.
func (n *Node) Kill() {
	n.Server.Kill()
	n.Server = nil
}

// Stop ends the server with SIGTERM and requires exit code 0.
func (n *Node) Stop(t testing.TB) {
	t.Helper()
	require.NoError(t, n.Server.Stop(), "%s", n.Server.Log())
	n.Server = nil
}

// Lockfs runs the program on the node's host and connects to the node.
func (n *Node) Lockfs(args ...string) (string, error) {
	return n.Host.Run(n.cluster.Program, append(args, n.Asked()...)...)
}

// Get gets a path of the node's HTTP address, from its host.
func (n *Node) Get(path string) (string, error) { return Get(n.Host, "http://"+n.HTTPAddr()+path) }

// Get gets a URL from a host, and returns the status code and the text.
func Get(h *hosts.Host, url string) (string, error) {
	const script = `
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1])
except urllib.error.HTTPError as error:
    answer = error
print(answer.status, answer.read().decode())
`
	return h.Run("python3", "-c", script, url)
}

// CountMounts counts a host's lockfs mounts at dir, working or not.
func CountMounts(t testing.TB, h *hosts.Host, dir string) int {
	t.Helper()
	return strings.Count(h.MustRun(t, "cat", "/proc/mounts"), " "+dir+" fuse.lockfs ")
}

// ListDir returns the entries of a directory by name: "file CONTENT", "symlink TARGET" or "directory ".
func ListDir(t testing.TB, n *Node, dir string) map[string]string {
	t.Helper()
	const script = `
import os, sys
for entry in sorted(os.scandir(sys.argv[1]), key=lambda entry: entry.name):
    if entry.is_symlink():
        what = "symlink " + os.readlink(entry.path)
    elif entry.is_dir():
        what = "directory "
    else:
        what = "file " + open(entry.path).read()
    print(entry.name, what, sep="\t")
`
	present := make(map[string]string)
	for line := range strings.Lines(n.Host.MustRun(t, "python3", "-c", script, dir)) {
		name, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		present[name] = what
	}
	return present
}
