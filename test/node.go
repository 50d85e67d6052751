package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

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

func (n *node) apiAddr() string { return n.host.Addr() + ":7421" }

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

// lockfs runs the program on the node's host, against the node.
func (n *node) lockfs(args ...string) (string, error) {
	return n.host.Run(n.cluster.program, append(args, "--servers", n.apiAddr())...)
}

// get asks a node's HTTP address, from its host.
func (n *node) get(path string) (string, error) {
	const script = `
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1])
except urllib.error.HTTPError as error:
    answer = error
print(answer.status, answer.read().decode())
`
	return n.host.Run("python3", "-c", script, "http://"+n.httpAddr()+path)
}

// mounts counts the mounts of lockfs, alive or not, that a host has at dir.
func mounts(t testing.TB, h *hosts.Host, dir string) int {
	t.Helper()
	return strings.Count(h.MustRun(t, "cat", "/proc/mounts"), " "+dir+" fuse.lockfs ")
}

// list answers what is in a directory, by name, as "file CONTENT", "symlink TARGET" or "directory ".
func list(t testing.TB, n *node, dir string) map[string]string {
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
	for line := range strings.Lines(n.host.MustRun(t, "python3", "-c", script, dir)) {
		name, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		present[name] = what
	}
	return present
}
