package cluster

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

var firstOnly, firstAndSecond = version.Range{Oldest: 1, Newest: 1}, version.Range{Oldest: 1, Newest: 2}

// restart runs a node again with a program that knows other versions.
func restart(t *testing.T, node *Node, known version.Range) *Node {
	t.Helper()
	require.NoError(t, node.Close())
	return startAs(t, node, known)
}

// startAs runs a node that was closed again with a program that knows other versions.
func startAs(t *testing.T, closed *Node, known version.Range) *Node {
	t.Helper()
	cfg := closed.cfg
	cfg.Metrics, cfg.versions = nil, known
	return startNode(t, cfg)
}

// requireVersion waits until nodes have heard that the cluster runs at a version.
func requireVersion(t *testing.T, want uint32, nodes ...*Node) {
	t.Helper()
	for _, node := range nodes {
		require.Eventually(t, func() bool { return node.clusterVersion() == want }, testWait, 10*time.Millisecond, node.cfg.Name)
	}
}

// requireKnown waits until nodes have heard which versions a member knows.
func requireKnown(t *testing.T, member *Node, want version.Range, nodes ...*Node) {
	t.Helper()
	for _, node := range nodes {
		require.Eventually(t, func() bool {
			m := node.members.get(member.dir.ID)
			return m != nil && namespace.VersionsOf(m) == want
		}, testWait, 10*time.Millisecond, node.cfg.Name)
	}
}

// contentsOf are the contents of all files of a directory.
func contentsOf(t *testing.T, dir string) map[string]string {
	files := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = string(content)
		return err
	}))
	return files
}

// TestRollingUpgrade brings three servers to a program that knows the next version, one after the other,
// one of them back before all have it, and then tries to go back, and to join, with the program before.
func TestRollingUpgrade(t *testing.T) {
	nodes := startNodes(t, 3)
	made := 0
	requireWorks := func() {
		t.Helper()
		made++
		client := openTestClient(t, nodes[made%3], "")
		require.Equal(t, storepb.Code_OK, create(t, client, fmt.Sprint("file", made)))
		require.NoError(t, client.Close(t.Context()))
	}
	for i, known := range map[int]version.Range{0: firstAndSecond, 1: firstAndSecond} {
		nodes[i] = restart(t, nodes[i], known)
		requireKnown(t, nodes[i], known, nodes...)
		requireWorks()
	}
	nodes[1] = restart(t, nodes[1], firstOnly)
	requireKnown(t, nodes[1], firstOnly, nodes...)
	nodes[2] = restart(t, nodes[2], firstAndSecond)
	requireKnown(t, nodes[2], firstAndSecond, nodes...)
	requireWorks()
	for _, node := range nodes {
		node.versionUpgrader().tryUpgrade()
	}
	requireVersion(t, 1, nodes...)

	nodes[1] = restart(t, nodes[1], firstAndSecond)
	requireVersion(t, 2, nodes...)
	requireWorks()
	status := ask(t, nodes[2], rpc.Node.Status, &clusterpb.StatusRequest{})
	require.EqualValues(t, 2, status.GetClusterVersion())
	require.EqualValues(t, 1, status.GetOldestVersion())
	require.EqualValues(t, 2, status.GetNewestVersion())

	require.NoError(t, nodes[0].Close())
	old := nodes[0].cfg
	old.Metrics, old.versions = nil, firstOnly
	before := contentsOf(t, old.DataDir)
	_, err := Open(old)
	require.ErrorIs(t, err, codec.ErrNewer)
	require.ErrorContains(t, err, "the cluster runs at version 2, and this program knows 1")
	require.Equal(t, before, contentsOf(t, old.DataDir))
	nodes[0] = startAs(t, nodes[0], firstAndSecond)

	stranger := testConfig(t, "old", nodes[0].cfg.Address)
	stranger.versions = firstOnly
	joins, err := Open(stranger)
	require.NoError(t, err)
	t.Cleanup(func() { _ = joins.Close() })
	err = joins.WaitReady(t.Context())
	require.ErrorContains(t, err, "the cluster runs at version 2, and the program of old knows 1: install a newer one there")
	requireWorks()
}

// TestNoVersionUpgradeWithoutAnAnswer has a member that said that it knows the next version, and cannot
// be asked whether it still does.
func TestNoVersionUpgradeWithoutAnAnswer(t *testing.T) {
	first := testConfig(t, "n0")
	nodes := []*Node{startNode(t, first)}
	for _, name := range []string{"n1", "n2"} {
		nodes = append(nodes, startNode(t, testConfig(t, name, first.Address)))
	}
	silent := nodes[2]
	require.NoError(t, silent.Close())
	for _, i := range []int{0, 1} {
		nodes[i] = restart(t, nodes[i], firstAndSecond)
	}
	for _, node := range nodes[:2] {
		requireKnown(t, nodes[0], firstAndSecond, node)
		requireKnown(t, nodes[1], firstAndSecond, node)
	}
	said := silent.members.own()
	said.NewestVersion = 2
	join := &clusterpb.JoinRequest{Member: said, Cluster: nodes[0].dir.ClusterID()}
	reply := ask(t, nodes[0], rpc.Node.Join, join)
	if reply.GetOutcome() == clusterpb.Outcome_NOT_LEADER {
		reply = ask(t, nodes[1], rpc.Node.Join, join)
	}
	require.Equal(t, storepb.Code_OK, reply.GetResult().GetCode(), reply)
	requireKnown(t, silent, firstAndSecond, nodes[:2]...)
	for _, node := range nodes[:2] {
		if node.leadership.term() != 0 {
			node.versionUpgrader().tryUpgrade()
		}
	}
	requireVersion(t, 1, nodes[:2]...)
	nodes[2] = startAs(t, silent, firstAndSecond)
	requireVersion(t, 2, nodes...)
}
